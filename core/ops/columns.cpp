#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The columns of a matrix (rows, width) from `begin` on.
template <class T>
struct Columns {
  T* matrix;
  int64_t width, begin;
  WISP_HD T* of(int64_t row) const { return matrix + row * width + begin; }
};

template <class T>
struct Move {
  struct Shared {};
  Columns<const T> from;
  Columns<T> to;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const T* in = from.of(row) + begin;
    T* out = to.of(row) + begin;
    team.each(end - begin, [&](int64_t c) { deposit(out + c, wide(in[c]), accumulate); });
  }
};

/// Writes zeros to the columns outside [first, last).
template <class T>
struct ZeroBeside {
  struct Shared {};
  T* matrix;
  int64_t width, first, last;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    T* out = matrix + row * width + begin;
    const int64_t before = first - begin, behind = last - begin;
    team.each(end - begin, [&](int64_t c) {
      if (c < before || behind <= c) store(out + c, 0);
    });
  }
};

/// A tensor, and the first of the columns to read or write in its last extent.
struct Place {
  const Tensor& tensor;
  int64_t begin = 0;
};

void move(const Stream& stream, const Place& from, const Place& to, int64_t count,
          bool accumulate) {
  dispatch_activation(to.tensor.dtype(), "columns", [&]<class T>(T) {
    parallel_row_parts(stream, to.tensor.shape().rows(), count,
                       Move<T>{{from.tensor.data<T>(), from.tensor.shape()[-1], from.begin},
                               {to.tensor.data<T>(), to.tensor.shape()[-1], to.begin},
                               accumulate});
  });
}

void zero_beside(const Stream& stream, const Tensor& tensor, int64_t begin, int64_t end) {
  dispatch_activation(tensor.dtype(), "columns", [&]<class T>(T) {
    const int64_t width = tensor.shape()[-1];
    parallel_row_parts(stream, tensor.shape().rows(), width,
                       ZeroBeside<T>{tensor.data<T>(), width, begin, end});
  });
}

}  // namespace

Variable columns(const Variable& x, int64_t begin, int64_t end) {
  Context& context = x.context();
  const int64_t width = x.shape().rank() > 0 ? x.shape()[-1] : 0;
  WISP_CHECK(0 <= begin && begin < end && end <= width, "columns: [", begin, ", ", end, ") of ",
             x.shape());
  const Tensor y = context.empty(x.shape().with_columns(end - begin), x.value().dtype());
  move(context.stream, {x.value(), begin}, {y}, end - begin, false);
  return record("columns", y, {x},
                [&context, begin, end](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0);
                  if (!dx.accumulate) zero_beside(context.stream, dx.into, begin, end);
                  move(context.stream, {dy}, {dx.into, begin}, end - begin, dx.accumulate);
                },
                {{"begin", begin}, {"end", end}});
}

Variable join_columns(const std::vector<Variable>& parts) {
  WISP_CHECK(!parts.empty(), "join_columns: no parts");
  Context& context = parts[0].context();
  const Shape first = parts[0].shape();
  const DType dtype = parts[0].value().dtype();
  WISP_CHECK(first.numel() > 0 && first.rank() > 0, "join_columns: a part has no columns");
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const Variable& part : parts) {
    WISP_CHECK(part.shape().rank() == first.rank() &&
                   part.shape().with_columns(first[-1]) == first && part.value().dtype() == dtype,
               "join_columns: ", part.shape(), " ", name_of(part.value().dtype()), " beside ",
               first, " ", name_of(dtype),
               ", expected equal shapes but for the columns, and equal types");
    counts.push_back(part.shape()[-1]);
    total += counts.back();
  }
  const Tensor y = context.empty(first.with_columns(total), dtype);
  int64_t begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    move(context.stream, {parts[i].value()}, {y, begin}, counts[i], false);
    begin += counts[i];
  }
  return record("join_columns", y, parts, [&context, counts](const Tensor& dy, Inputs& in) {
    int64_t at = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (in.wanted(i)) {
        const GradSlot part = in.slot(i);
        move(context.stream, {dy, at}, {part.into}, counts[i], part.accumulate);
      }
      at += counts[i];
    }
  });
}

}  // namespace wisp
