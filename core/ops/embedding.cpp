#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

template <class T>
struct Table {
  T* entries;
  int64_t count, width;
  const int32_t* ids;
  /// The entry of a row's id; null if that is out of range.
  WISP_HD T* of(int64_t row) const {
    const int32_t id = ids[row];
    return id >= 0 && id < count ? entries + id * width : nullptr;
  }
};

/// One index per row.
template <class T>
struct LookUp {
  Table<const Wide<T>> table;
  T* y;
  WISP_HD void operator()(int64_t row) const {
    const Wide<T>* entry = table.of(row);
    T* out = y + row * table.width;
#pragma GCC ivdep
    for (int64_t c = 0; c < table.width; ++c) store(out + c, entry ? entry[c] : Wide<T>(0));
  }
};

template <class T>
struct Clear {
  T* x;
  WISP_HD void operator()(int64_t i) const { x[i] = 0; }
};

constexpr int64_t kColumnGroup = 64;  // columns that are added up side by side

/// One index per group of columns: rows are added in the order of ids, so that the bits depend on
/// nothing else.
template <class T>
struct AddRows {
  const T* dy;
  Table<Wide<T>> table;
  int64_t rows;
  WISP_HD void operator()(int64_t group) const {
    const int64_t begin = group * kColumnGroup;
    const int64_t end = begin + kColumnGroup < table.width ? begin + kColumnGroup : table.width;
    for (int64_t row = 0; row < rows; ++row) {
      Wide<T>* entry = table.of(row);
      if (!entry) continue;
      const T* in = dy + row * table.width;
#pragma GCC ivdep
      for (int64_t c = begin; c < end; ++c) entry[c] += wide(in[c]);
    }
  }
};

}  // namespace

Variable embedding(const Variable& table, const Tensor& ids) {
  Context& context = table.context();
  const Shape& shape = table.shape();
  WISP_CHECK(shape.rank() == 2 && shape.numel() > 0, "embedding: the table is ", shape,
             ", expected (V, H)");
  WISP_CHECK(ids.defined() && ids.shape().rank() == 1 && ids.dtype() == DType::i32,
             "embedding: ids are ", ids.shape(), " ", name_of(ids.dtype()), ", expected (N) i32");
  const int64_t rows = ids.numel(), entries = shape[0], width = shape[1];
  const Tensor y = context.empty({rows, width}, context.compute);
  WISP_CHECK(table.value().dtype() == wide_of(y.dtype()), "embedding: the table is ",
             name_of(table.value().dtype()), " beside activations in ", name_of(y.dtype()));
  dispatch_activation(y.dtype(), "embedding", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, rows,
                 LookUp<T>{{table.value().data<Wide<T>>(), entries, width, ids.data<int32_t>()},
                           y.data<T>()},
                 width);
  });
  std::vector<Variable> inputs{table};
  if (context.log) inputs.emplace_back(context, ids);  // a constant that readers of the log need
  return record(
      "embedding", y, inputs, [&context, ids, rows, entries, width](const Tensor& dy, Inputs& in) {
        const GradSlot slot = in.slot(0);
        dispatch_activation(dy.dtype(), "embedding", [&](auto zero) {
          using T = decltype(zero);
          const Table<Wide<T>> sums{slot.into.data<Wide<T>>(), entries, width, ids.data<int32_t>()};
          if (!slot.accumulate)
            parallel_for(context.stream, entries * width, Clear<Wide<T>>{sums.entries});
          parallel_for(context.stream, (width + kColumnGroup - 1) / kColumnGroup,
                       AddRows<T>{dy.data<T>(), sums, rows}, rows * kColumnGroup);
        });
      });
}

}  // namespace wisp
