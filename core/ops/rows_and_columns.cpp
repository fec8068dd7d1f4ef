#include "core/loops/parallel_row_parts.h"
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

/// The extent along which parts are joined.
struct Seam {
  const char* op;
  const char* name;  // of what the extent counts
  int index;
  Shape (Shape::*with)(int64_t) const;
};

/// put(part, y, begin) copies a part to y from `begin` on. take(dy, begin, slot) fills the slot of
/// a part that begins there.
template <class Put, class Take>
Variable join(const Seam& seam, const std::vector<Variable>& parts, const Put& put,
              const Take& take) {
  const auto [op, name, index, with] = seam;
  WISP_CHECK(!parts.empty(), op, ": no parts");
  Context& context = parts[0].context();
  const Shape first = parts[0].shape();
  const DType dtype = parts[0].value().dtype();
  WISP_CHECK(first.rank() > 0 && (index == 0 || first.numel() > 0), op, ": a part has no ", name);
  std::vector<int64_t> begins;
  int64_t total = 0;
  for (const Variable& part : parts) {
    const Shape& shape = part.shape();
    WISP_CHECK(shape.rank() == first.rank() && (shape.*with)(first[index]) == first &&
                   part.value().dtype() == dtype,
               op, ": ", shape, " ", name_of(part.value().dtype()), " beside ", first, " ",
               name_of(dtype), ", expected equal shapes but for the ", name, ", and equal types");
    begins.push_back(total);
    total += shape[index];
  }
  const Tensor y = context.empty((first.*with)(total), dtype);
  for (size_t i = 0; i < parts.size(); ++i) put(context.stream, parts[i].value(), y, begins[i]);
  return record(op, y, parts, [&context, begins, take](const Tensor& dy, Inputs& in) {
    for (size_t i = 0; i < begins.size(); ++i)
      if (in.wanted(i)) take(context.stream, dy, begins[i], in.slot(i));
  });
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
  return join(
      {"join_rows", "rows", 0, &Shape::with_rows}, parts,
      [](const Stream& stream, const Tensor& part, const Tensor& y, int64_t begin) {
        dispatch_activation(part.dtype(), "join_rows", [&]<class T>(T) {
          copy<T>(stream, part, y.rows(begin, begin + part.shape()[0]));
        });
      },
      [](const Stream& stream, const Tensor& dy, int64_t begin, const GradSlot& slot) {
        deposit(stream, dy.rows(begin, begin + slot.into.shape()[0]), slot);
      });
}

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
  return join(
      {"join_columns", "columns", -1, &Shape::with_columns}, parts,
      [](const Stream& stream, const Tensor& part, const Tensor& y, int64_t begin) {
        move(stream, {part}, {y, begin}, part.shape()[-1], false);
      },
      [](const Stream& stream, const Tensor& dy, int64_t begin, const GradSlot& slot) {
        move(stream, {dy, begin}, {slot.into}, slot.into.shape()[-1], slot.accumulate);
      });
}

}  // namespace wisp
