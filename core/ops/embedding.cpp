#include "core/ops.h"
#include "core/ops/gradient.h"
#include "core/parallel.h"

namespace wisp {
namespace {

template <class T>
struct LookUp {
  const Wide<T>* table;
  const int32_t* ids;
  int64_t entries, width;
  T* y;
  WISP_HD void operator()(int64_t i) const {
    const int32_t id = ids[i / width];
    const bool known = id >= 0 && id < entries;
    store(y + i, known ? table[id * width + i % width] : Wide<T>(0));
  }
};

/// One index per column of the table: its rows are added up in the order of ids, so that the bits
/// depend on nothing else.
template <class T>
struct TableGradient {
  const T* dy;
  const int32_t* ids;
  int64_t rows, entries, width;
  Wide<T>* dtable;
  bool accumulate;
  WISP_HD void operator()(int64_t column) const {
    if (!accumulate) {
      for (int64_t entry = 0; entry < entries; ++entry) dtable[entry * width + column] = 0;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t id = ids[row];
      if (id >= 0 && id < entries) dtable[id * width + column] += wide(dy[row * width + column]);
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
    parallel_for(
        context.stream, y.numel(),
        LookUp<T>{table.value().data<Wide<T>>(), ids.data<int32_t>(), entries, width, y.data<T>()});
  });
  std::vector<Variable> inputs{table};
  if (context.log) inputs.emplace_back(context, ids);  // a constant that readers of the log need
  return record(
      "embedding", y, inputs, [&context, ids, rows, entries, width](const Tensor& dy, Inputs& in) {
        const GradSlot slot = in.slot(0);
        dispatch_activation(dy.dtype(), "embedding", [&](auto zero) {
          using T = decltype(zero);
          parallel_for(context.stream, width,
                       TableGradient<T>{dy.data<T>(), ids.data<int32_t>(), rows, entries, width,
                                        slot.into.data<Wide<T>>(), slot.accumulate});
        });
      });
}

}  // namespace wisp
