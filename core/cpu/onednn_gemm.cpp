#include "core/cpu/onednn_gemm.h"

namespace wisp {
namespace {

using dnnl::memory;

/// A matrix in row-major order, or transposed in memory.
memory::desc matrix(int64_t rows, int64_t columns, DType type, bool transposed) {
  const auto tag = transposed ? memory::format_tag::ba : memory::format_tag::ab;
  return {{rows, columns}, onednn_type(type), tag};
}

}  // namespace

OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& s, DType b, DType c) {
  const memory::desc left = matrix(s.m, s.k, DType::bf16, s.transpose_a);
  const memory::desc right = matrix(s.k, s.n, DType::bf16, s.transpose_b);
  const memory::desc product = matrix(s.m, s.n, c, false);
  const dnnl::matmul::primitive_desc found(dnnl::matmul::desc(left, right, product),
                                           own_scratchpad(), engine);
  return {engine,
          dnnl::primitive(found),
          found.scratchpad_desc(),
          {DNNL_ARG_SRC, left, found.src_desc()},
          {DNNL_ARG_WEIGHTS, matrix(s.k, s.n, b, s.transpose_b), found.weights_desc()},
          {DNNL_ARG_DST, product, found.dst_desc()}};
}

}  // namespace wisp
