#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

template <class T>
struct Table {
  T* entries;
  int64_t count, width;
  const int32_t* ids;
  /// The entry of a row's id, or null if the id is out of range.
  WISP_HD T* of(int64_t row) const {
    const int32_t id = ids[row];
    return id >= 0 && id < count ? entries + id * width : nullptr;
  }
};

template <class T>
struct LookUp {
  struct Shared {};
  Table<const Wide<T>> table;
  T* y;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const Wide<T>* entry = table.of(row);
    T* out = y + row * table.width;
    team.each(end - begin,
              [&](int64_t c) { store(out + begin + c, entry ? entry[begin + c] : Wide<T>(0)); });
  }
};

template <class T>
struct Clear {
  T* x;
  WISP_HD void operator()(int64_t i) const { x[i] = 0; }
};

/// A chain of the rows of each id, in their order. next[row] is the next row with the same id, or
/// `rows` if there is none; it is complemented (negative) unless the row is the id's first. All
/// pairs of rows are compared, which costs little next to a model's work per row. An index is a
/// row.
struct Chains {
  const int32_t* ids;
  int32_t* next;
  int64_t rows;
  WISP_HD void operator()(int64_t row) const {
    const int32_t id = ids[row];
    int64_t before = 0, behind = row + 1;
    while (before < row && ids[before] != id) ++before;
    while (behind < rows && ids[behind] != id) ++behind;
    const auto found = static_cast<int32_t>(behind);
    next[row] = before == row ? found : ~found;
  }
};

/// Adds up the rows of an id in their order, at the item of its first row, so that the bits depend
/// on nothing else.
template <class T>
struct AddRows {
  struct Shared {};
  const T* dy;
  Table<Wide<T>> table;
  const int32_t* next;
  int64_t rows;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t first, int64_t begin, int64_t end,
                          Shared&) const {
    Wide<T>* const entry = table.of(first);
    if (!entry || next[first] < 0) return;
    for (int64_t at = begin; at < end; at += parallel::kLanes) {
      const int64_t count = end - at < parallel::kLanes ? end - at : parallel::kLanes;
      typename Team::template PerLane<Wide<T>> sum;
      team.lanes([&](int64_t lane) { sum[lane] = lane < count ? entry[at + lane] : 0; });
      for (int64_t row = first; row < rows; row = row == first ? next[row] : ~next[row]) {
        const T* in = dy + row * table.width + at;
        team.lanes([&](int64_t lane) { sum[lane] += lane < count ? wide(in[lane]) : 0; });
      }
      team.lanes([&](int64_t lane) {
        if (lane < count) entry[at + lane] = sum[lane];
      });
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
  dispatch_activation(y.dtype(), "embedding", [&]<class T>(T) {
    parallel_row_parts(
        context.stream, rows, width,
        LookUp<T>{{table.value().data<Wide<T>>(), entries, width, ids.data<int32_t>()},
                  y.data<T>()});
  });
  std::vector<Variable> inputs{table};
  if (context.log) inputs.emplace_back(context, ids);  // a constant that readers of the log need
  return record(
      "embedding", y, inputs, [&context, ids, rows, entries, width](const Tensor& dy, Inputs& in) {
        const GradSlot slot = in.slot(0);
        dispatch_activation(dy.dtype(), "embedding", [&]<class T>(T) {
          const Table<Wide<T>> sums{slot.into.data<Wide<T>>(), entries, width, ids.data<int32_t>()};
          if (!slot.accumulate)
            parallel_for(context.stream, entries * width, Clear<Wide<T>>{sums.entries});
          const Tensor next = context.empty({rows}, DType::i32);
          parallel_for(context.stream, rows, Chains{sums.ids, next.data<int32_t>(), rows}, rows);
          parallel_row_parts(context.stream, rows, width,
                             AddRows<T>{dy.data<T>(), sums, next.data<int32_t>(), rows},
                             parallel::kLanes);  // each part walks along the rows of its id
        });
      });
}

}  // namespace wisp
