#include <limits>

#include "core/backend.h"
#include "core/ops.h"
#include "core/pools.h"

namespace wisp {
namespace {

PoolSpec spec_of(const char* op, const Shape& x, int64_t kernel, const PoolOptions& options) {
  WISP_CHECK(x.rank() == 4, op, ": input is ", x, ", expected (N, H, W, C)");
  WISP_CHECK(kernel > 0 && options.stride >= 0, op, ": kernel ", kernel, ", stride ",
             options.stride, ", expected positive numbers (stride 0 means the kernel)");
  WISP_CHECK(options.pad >= 0 && options.pad < kernel, op, ": pad ", options.pad,
             ", expected 0 to ", kernel - 1, " for a kernel of ", kernel);
  const PoolSpec spec{.batch = x[0],
                      .height = x[1],
                      .width = x[2],
                      .channels = x[3],
                      .kernel = kernel,
                      .stride = options.stride ? options.stride : kernel,
                      .pad = options.pad};
  WISP_CHECK(spec.height + 2 * spec.pad >= kernel && spec.width + 2 * spec.pad >= kernel, op,
             ": a kernel of ", kernel, " does not fit into input ", x, " with pad ", spec.pad);
  return spec;
}

Shape output_shape(const PoolSpec& spec) {
  return {spec.batch, spec.out_height(), spec.out_width(), spec.channels};
}

}  // namespace

Variable max_pool2d(const Variable& x, int64_t kernel, PoolOptions options) {
  Context& context = x.context();
  const PoolSpec spec = spec_of("max_pool2d", x.shape(), kernel, options);
  WISP_CHECK(x.value().numel() <= std::numeric_limits<int32_t>::max(), "max_pool2d: input ",
             x.shape(), " has ", x.value().numel(), " elements, positions are 32-bit");
  Tensor y = context.empty(output_shape(spec), x.value().dtype());
  Tensor argmax = context.empty(output_shape(spec), DType::i32);
  context.backend.pools().max_pool(context.stream, spec, x.value(), y, argmax);
  return record("max_pool2d", y, {x},
                [&context, spec, argmax](const Tensor& dy, Inputs& in) {
                  context.backend.pools().max_pool_dx(context.stream, spec, dy, argmax, in.slot(0));
                },
                {{"kernel", spec.kernel}, {"stride", spec.stride}, {"pad", spec.pad}});
}

Variable avg_pool2d(const Variable& x, int64_t kernel, PoolOptions options) {
  Context& context = x.context();
  const PoolSpec spec = spec_of("avg_pool2d", x.shape(), kernel, options);
  Tensor y = context.empty(output_shape(spec), x.value().dtype());
  context.backend.pools().avg_pool(context.stream, spec, x.value(), y);
  return record("avg_pool2d", y, {x},
                [&context, spec](const Tensor& dy, Inputs& in) {
                  context.backend.pools().avg_pool_dx(context.stream, spec, dy, in.slot(0));
                },
                {{"kernel", spec.kernel}, {"stride", spec.stride}, {"pad", spec.pad}});
}

}  // namespace wisp
