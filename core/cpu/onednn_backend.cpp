// The CPU backend on oneDNN for f32 and bf16, with our own norms, pools and recurrent layers, and
// kissfft's transforms. f64 uses the reference loops. Primitives are made and run inside the
// stream's tasks, so one thread makes and runs them under one OpenMP setting.
#include <omp.h>

#include <cassert>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <variant>
#include <vector>

#include "core/backend.h"
#include "core/base/omp_threads.h"
#include "core/base/recently_used.h"
#include "core/cpu/batch_norm.h"
#include "core/cpu/block_product.h"
#include "core/cpu/onednn_conv.h"
#include "core/cpu/pool.h"
#include "core/cpu/rnn.h"
#include "core/products.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

/// A matrix in row-major order, or transposed in memory.
dnnl::memory::desc matrix(int64_t rows, int64_t columns, DType type, bool transposed) {
  using Tag = dnnl::memory::format_tag;
  return {{rows, columns}, onednn_type(type), transposed ? Tag::ba : Tag::ab};
}

/// C from (A, B) in bf16; f32 uses the library's sgemm. A is bf16; `b` and `c` are the types of B
/// and C; B is multiplied as bf16. Throws dnnl::error if the library has no implementation.
OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& s, DType b, DType c) {
  const auto left = matrix(s.m, s.k, DType::bf16, s.transpose_a);
  const auto right = matrix(s.k, s.n, DType::bf16, s.transpose_b);
  const auto product = matrix(s.m, s.n, c, false);
  const dnnl::matmul::primitive_desc found(dnnl::matmul::desc(left, right, product),
                                           own_scratchpad(), engine);
  return {engine,
          dnnl::primitive(found),
          found.scratchpad_desc(),
          {DNNL_ARG_SRC, left, found.src_desc()},
          {DNNL_ARG_WEIGHTS, matrix(s.k, s.n, b, s.transpose_b), found.weights_desc()},
          {DNNL_ARG_DST, product, found.dst_desc()}};
}

class OnednnBackend final : public Backend, Products, Convolutions {
 public:
  explicit OnednnBackend(MemoryPool& pool) : workspace_(pool) {
    // Each backend keeps its own primitives, because all threads share the library's cache.
    dnnl::set_primitive_cache_capacity(0);
  }

  std::string name() const override { return "onednn"; }
  std::string numerics() const override {
    const dnnl_version_t& version = *dnnl_version();
    const auto bf16 = block_kernels<BFloat16>();
    return concat("onednn ", version.major, ".", version.minor, ".", version.patch, " ",
                  instruction_set(), ", recurrent ", block_kernel<float>().name,
                  bf16.empty() ? "" : concat(" and ", bf16[0].name), ", fft ", fft_->numerics());
  }
  int64_t workspace_bytes() const override { return workspace_.bytes(); }
  int64_t kept_objects() const override { return ops_.size(); }

  Products& products() override { return *this; }
  Convolutions& convolutions() override { return *this; }
  Pools& pools() override { return pools_; }
  Norms& norms() override { return norms_; }
  RecurrentLayers& recurrent() override { return recurrent_; }
  RealFft& fft() override { return *fft_; }

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override {
    if (a.dtype() == DType::f64) return reference_->products().gemm(stream, spec, a, b, c);
    if (a.dtype() == DType::bf16) return submit_bf16_gemm(stream, spec, a, b, c);
    stream.submit([=, this] {
      const OmpThreads threads(team_.granted());
      const dnnl::status status =
          dnnl::sgemm(spec.transpose_a ? 'T' : 'N', spec.transpose_b ? 'T' : 'N', spec.m, spec.n,
                      spec.k, 1.0f, a.data<float>(), spec.transpose_a ? spec.m : spec.k,
                      b.data<float>(), spec.transpose_b ? spec.k : spec.n,
                      c.accumulate ? 1.0f : 0.0f, c.into.data<float>(), spec.n);
      WISP_CHECK(status == dnnl::status::success, "gemm (", spec.m, ", ", spec.n, ", ", spec.k,
                 "): oneDNN returned ", static_cast<int>(status));
    });
  }

  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override {
    assert(pass != ConvPass::forward || !result.accumulate);
    if (first.dtype() == DType::f64)
      return reference_->convolutions().convolve(stream, pass, spec, first, second, result);
    stream.submit([=, this] {
      const OmpThreads threads(team_.granted());
      try {
        const DType images = first.dtype();
        run(ops_.find(ConvKey{pass, spec, images, omp_get_max_threads()},
                      [&] { return make_conv(engine_, pass, spec, images); }),
            first, second, result);
      } catch (const dnnl::error& error) {
        throw Error(concat(described(pass, spec), ": oneDNN: ", error.what()));
      }
    });
  }

 private:
  // a primitive, and every barrier of the library, is for one number of threads
  struct ConvKey {
    ConvPass pass;
    ConvSpec spec;
    DType images;
    int threads;
    bool operator==(const ConvKey&) const = default;
  };
  struct GemmKey {
    GemmSpec spec;
    DType b, c;
    int threads;
    bool operator==(const GemmKey&) const = default;
  };

  void submit_bf16_gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a,
                        const Tensor& b, const GradSlot& c) {
    stream.submit([=, this] {
      const OmpThreads threads(team_.granted());
      try {
        const DType b_type = b.dtype();
        const DType c_type = c.into.dtype();
        run(ops_.find(GemmKey{spec, b_type, c_type, omp_get_max_threads()},
                      [&] { return std::vector{make_bf16_gemm(engine_, spec, b_type, c_type)}; }),
            a, b, c);
      } catch (const dnnl::error& error) {
        throw Error(concat("gemm (", spec.m, ", ", spec.n, ", ", spec.k,
                           ") in bf16: oneDNN: ", error.what()));
      }
    });
  }

  void run(std::vector<OnednnOp>& ops, const Tensor& first, const Tensor& second,
           const GradSlot& result) {
    const bool several = ops.size() > 1;
    if (several && !result.accumulate) result.into.clear();
    const bool accumulate = several || result.accumulate;
    for (OnednnOp& op : ops)
      op.run(queue_, first.raw(), second.raw(), result.into.raw(), accumulate,
             workspace_.of(op.workspace_bytes(accumulate)));
    queue_.wait();
  }

  KnownOmpThreads team_;
  Workspace workspace_;
  const std::unique_ptr<Backend> reference_ = make_cpu_reference_backend();
  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream queue_{engine_};
  RecentlyUsed<std::variant<ConvKey, GemmKey>, std::vector<OnednnOp>> ops_{kMostKeptObjects};
  CpuPools pools_{reference_->pools()};
  CpuNorms norms_{reference_->norms(), workspace_};
  CpuRecurrentLayers recurrent_{reference_->recurrent(), workspace_};
  const std::unique_ptr<RealFft> fft_ = make_cpu_fft();
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(MemoryPool& pool) {
  return std::make_unique<OnednnBackend>(pool);
}

std::string missing_for(DType compute) {
  // without it the library emulates bf16, many times slower than f32
  const dnnl::cpu_isa found = dnnl::get_effective_cpu_isa();
  const bool there =
      found == dnnl::cpu_isa::avx512_core_bf16 || found == dnnl::cpu_isa::avx512_core_amx;
  return compute == DType::bf16 && !there ? "a CPU with AVX-512 BF16 (avx512_bf16)" : "";
}

}  // namespace wisp
