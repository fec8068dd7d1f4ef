#include "core/cuda/cublas.h"

#include <cublasLt.h>

#include <bit>

#include "core/backend.h"
#include "core/cuda/stream.h"
#include "core/device/device_work.h"
#include "core/ops/gradient.h"

namespace wisp::cuda {
namespace {

constexpr int64_t kMostWorkspaceBytes = 32 << 20;  // NVIDIA's recommendation for Hopper
constexpr uint32_t kBiasAlignment = 16;            // bytes

/// Throws OutOfMemory or Error if `status` is a failure of the call.
void check_product(cublasStatus_t status, const char* call, const GemmSpec& s) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool memory = status == CUBLAS_STATUS_ALLOC_FAILED;
  const std::string failure =
      concat("gemm (", s.m, ", ", s.n, ", ", s.k, "): ", call, memory ? ": out of memory: " : ": ",
             cublasLtGetStatusString(status));
  if (memory) throw OutOfMemory(failure);
  throw Error(failure);
}

cudaDataType_t blas_type(DType dtype) {
  if (dtype == DType::f32) return CUDA_R_32F;
  if (dtype == DType::f64) return CUDA_R_64F;
  WISP_CHECK(dtype == DType::bf16, "gemm: dtype is ", name_of(dtype),
             ", expected f32, f64 or bf16");
  return CUDA_R_16BF;
}

/// The alignment of a tensor's address, at most 16 bytes, the width of loads. Without that limit
/// the algorithm, and thus the bits, would depend on the tensor's place in the pool.
uint32_t alignment_of(const Tensor& x) {
  return 1u << std::countr_zero(reinterpret_cast<uintptr_t>(x.raw()) | 16u);
}

}  // namespace

/// A product of one shape for the library, and the algorithm that its heuristic chooses. Matrices
/// are described column by column, the layout that all its kernels support. The library therefore
/// computes Cᵀ (n, m) = op(B)ᵀ · op(A)ᵀ.
class CublasProducts::Plan {
 public:
  Plan(cublasLtHandle_t handle, const Key& key, bool tf32) : spec_(key.spec) {
    const GemmSpec& s = spec_;
    const bool f64 = key.factors == DType::f64, rounded = tf32 && key.factors == DType::f32;
    const cublasComputeType_t compute = f64       ? CUBLAS_COMPUTE_64F
                                        : rounded ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
    check_product(cublasLtMatmulDescInit(&operation_, compute, f64 ? CUDA_R_64F : CUDA_R_32F),
                  "cublasLtMatmulDescInit", s);
    set_transpose(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_b);
    set_transpose(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_a);
    // the library adds one number per row of Cᵀ, which is a column of ours
    if (key.bias) {
      set_operation(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // the heuristic reads only the alignment; run() sets the actual bias
      set_operation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, uintptr_t{kBiasAlignment});
    }
    set_layout(left_, key.factors, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n);
    set_layout(right_, key.factors, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k);
    set_layout(product_, key.product, s.m, s.n);
    choose(handle, key);
  }

  /// Whether the library has an algorithm for the product.
  bool found() const { return found_; }
  int64_t workspace_bytes() const { return static_cast<int64_t>(chosen_.workspaceSize); }

  /// `Scale` is the type of alpha and beta: double for f64, else float.
  template <class Scale>
  void run(cublasLtHandle_t handle, const Tensor& left, const Tensor& right, const Tensor* bias,
           bool accumulate, const Tensor& c, void* workspace, void* stream) {
    if (bias) set_operation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(bias->raw()));
    const Scale alpha = 1, beta = accumulate ? 1 : 0;
    check_product(
        cublasLtMatmul(handle, &operation_, &alpha, left.raw(), &left_, right.raw(), &right_, &beta,
                       c.raw(), &product_, c.raw(), &product_, &chosen_.algo, workspace,
                       chosen_.workspaceSize, static_cast<cudaStream_t>(stream)),
        "cublasLtMatmul", spec_);
  }

 private:
  template <class Value>
  void set_operation(cublasLtMatmulDescAttributes_t attribute, Value value) {
    check_product(cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof value),
                  "cublasLtMatmulDescSetAttribute", spec_);
  }

  void set_transpose(cublasLtMatmulDescAttributes_t factor, bool transpose) {
    set_operation(factor, int32_t{transpose ? CUBLAS_OP_T : CUBLAS_OP_N});
  }

  /// Describes a matrix that we store as `rows` rows of `columns` elements.
  void set_layout(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, int64_t rows,
                  int64_t columns) {
    check_product(
        cublasLtMatrixLayoutInit(&layout, blas_type(dtype), static_cast<uint64_t>(columns),
                                 static_cast<uint64_t>(rows), columns),
        "cublasLtMatrixLayoutInit", spec_);
  }

  void choose(cublasLtHandle_t handle, const Key& key) {
    cublasLtMatmulPreferenceOpaque_t preference;
    check_product(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit", spec_);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check_product(
          cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", spec_);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostWorkspaceBytes});
    // partial sums in the compute type: the other schemes round them to C's type
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c_alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment);
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, &operation_, &left_, &right_, &product_, &product_,
                                       &preference, 1, &chosen_, &found);
    found_ =
        status == CUBLAS_STATUS_SUCCESS && found == 1 && chosen_.state == CUBLAS_STATUS_SUCCESS;
    if (found_ || key.bias || status == CUBLAS_STATUS_NOT_SUPPORTED) return;
    check_product(status, "cublasLtMatmulAlgoGetHeuristic", spec_);
  }

  const GemmSpec spec_;
  cublasLtMatmulDescOpaque_t operation_;
  cublasLtMatrixLayoutOpaque_t left_, right_, product_;
  cublasLtMatmulHeuristicResult_t chosen_;
  bool found_ = false;
};

CublasProducts::CublasProducts(MemoryPool& pool, Workspace& workspace, bool tf32)
    : pool_(pool),
      workspace_(workspace),
      tf32_(tf32),
      handle_(nullptr, [](cublasLtContext* handle) { cublasLtDestroy(handle); }),
      plans_(kMostKeptObjects) {}

CublasProducts::~CublasProducts() = default;

void CublasProducts::gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a,
                          const Tensor& b, GradSlot c) {
  if (spec.m == 0 || spec.n == 0) return;
  if (spec.k == 0) {
    if (!c.accumulate) fill_bytes(stream.native(), c.into.raw(), 0, c.into.bytes());
    return;
  }
  const bool done = multiply(stream, spec, a, in_type(a.dtype(), b, stream, pool_), nullptr, c);
  WISP_CHECK(done, "gemm (", spec.m, ", ", spec.n, ", ", spec.k, ") of ", name_of(a.dtype()),
             " into ", name_of(c.into.dtype()), ": cuBLASLt has no algorithm for it");
}

bool CublasProducts::gemm_bias(const Stream& stream, const GemmSpec& spec, const Tensor& a,
                               const Tensor& b, const Tensor& bias, const Tensor& c) {
  if (bias.dtype() != c.dtype() || c.dtype() == DType::f64) return false;
  if (alignment_of(bias) < kBiasAlignment || spec.m == 0 || spec.n == 0 || spec.k == 0)
    return false;
  return multiply(stream, spec, a, in_type(a.dtype(), b, stream, pool_), &bias, {c, false});
}

bool CublasProducts::multiply(const Stream& stream, const GemmSpec& spec, const Tensor& a,
                              const Tensor& b, const Tensor* bias, const GradSlot& c) {
  const Key key{spec,
                a.dtype(),
                c.into.dtype(),
                alignment_of(a),
                alignment_of(b),
                alignment_of(c.into),
                bias != nullptr};
  if (!handle_) {
    cublasLtHandle_t made = nullptr;
    check_product(cublasLtCreate(&made), "cublasLtCreate", spec);
    handle_.reset(made);
  }
  Plan& plan = *plans_.find(key, [&] { return std::make_unique<Plan>(handle_.get(), key, tf32_); });
  if (!plan.found()) return false;
  void* const workspace = workspace_.of(plan.workspace_bytes());
  if (a.dtype() == DType::f64) {
    plan.run<double>(handle_.get(), b, a, bias, c.accumulate, c.into, workspace, stream.native());
  } else {
    plan.run<float>(handle_.get(), b, a, bias, c.accumulate, c.into, workspace, stream.native());
  }
  count_device_work({.calls = 1});
  return true;
}

std::string CublasProducts::version() { return concat("cublasLt ", cublasLtGetVersion()); }

}  // namespace wisp::cuda
