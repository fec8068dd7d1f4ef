#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

template <class T>
struct Copy {
  const T* from;
  T* to;
  WISP_HD void operator()(int64_t i) const { to[i] = from[i]; }
};

/// Writes the gradient of the rows to their place in dx, and zeros elsewhere unless it accumulates.
template <class T>
struct RowsGradient {
  const T* dy;
  int64_t begin, end;  // elements
  T* dx;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    const bool inside = i >= begin && i < end;
    if (inside || !accumulate)
      deposit(dx + i, inside ? wide(dy[i - begin]) : Wide<T>(0), accumulate);
  }
};

template <class T>
void copy(const Stream& stream, const Tensor& from, const Tensor& to) {
  parallel_for(stream, from.numel(), Copy<T>{from.data<T>(), to.data<T>()});
}

}  // namespace

Variable rows(const Variable& x, int64_t begin, int64_t end) {
  Context& context = x.context();
  const Tensor y = x.value().rows(begin, end);
  const int64_t width = x.shape()[0] > 0 ? x.value().numel() / x.shape()[0] : 0;
  return record("rows", y, {x},
                [&context, begin, end, width](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0);
                  dispatch_activation(dy.dtype(), "rows", [&]<class T>(T) {
                    parallel_for(context.stream, dx.into.numel(),
                                 RowsGradient<T>{dy.data<T>(), begin * width, end * width,
                                                 dx.into.data<T>(), dx.accumulate});
                  });
                },
                {{"begin", begin}, {"end", end}});
}

Variable join_rows(const std::vector<Variable>& parts) {
  WISP_CHECK(!parts.empty(), "join_rows: no parts");
  Context& context = parts[0].context();
  const Shape first = parts[0].shape();
  const DType dtype = parts[0].value().dtype();
  WISP_CHECK(first.rank() > 0, "join_rows: a part has no rows");
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const Variable& part : parts) {
    WISP_CHECK(part.shape().rank() == first.rank() && part.shape().with_rows(first[0]) == first &&
                   part.value().dtype() == dtype,
               "join_rows: ", part.shape(), " ", name_of(part.value().dtype()), " beside ", first,
               " ", name_of(dtype), ", expected equal shapes but for the rows, and equal types");
    counts.push_back(part.shape()[0]);
    total += counts.back();
  }
  const Tensor y = context.empty(first.with_rows(total), dtype);
  int64_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    dispatch_activation(dtype, "join_rows", [&]<class T>(T) {
      copy<T>(context.stream, parts[i].value(), y.rows(begin, begin + counts[i]));
    });
    begin += counts[i];
  }
  return record("join_rows", y, parts, [&context, counts](const Tensor& dy, Inputs& in) {
    int64_t row = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (in.wanted(i)) deposit(context.stream, dy.rows(row, row + counts[i]), in.slot(i));
      row += counts[i];
    }
  });
}

}  // namespace wisp
