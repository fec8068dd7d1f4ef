#include "core/cpu/onednn_gemm.h"

namespace wisp {
namespace {

using dnnl::memory;

/// Row-major, or stored the other way round.
memory::desc matrix(int64_t rows, int64_t columns, memory::data_type type, bool transposed) {
  return {{rows, columns}, type, transposed ? memory::format_tag::ba : memory::format_tag::ab};
}

}  // namespace

OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& s, const GemmTypes& types) {
  constexpr auto bf16 = memory::data_type::bf16;
  const memory::desc a = matrix(s.m, s.k, onednn_type(types.a), s.transpose_a);
  const memory::desc b = matrix(s.k, s.n, onednn_type(types.b), s.transpose_b);
  const memory::desc c = matrix(s.m, s.n, onednn_type(types.c), false);
  const dnnl::matmul::primitive_desc found(
      dnnl::matmul::desc(matrix(s.m, s.k, bf16, s.transpose_a),
                         matrix(s.k, s.n, bf16, s.transpose_b), c),
      own_scratchpad(), engine);
  return {engine,
          dnnl::primitive(found),
          found.scratchpad_desc(),
          {DNNL_ARG_SRC, a, found.src_desc()},
          {DNNL_ARG_WEIGHTS, b, found.weights_desc()},
          {DNNL_ARG_DST, c, found.dst_desc()}};
}

}  // namespace wisp
