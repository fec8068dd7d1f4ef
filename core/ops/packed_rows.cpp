#include "core/ops/packed_rows.h"

#include "core/loops/device_table.h"
#include "core/ops/loss.h"
#include "core/rnn.h"

namespace wisp {

void check_sequences(const char* op, const Tensor& logits, const std::vector<int64_t>& rows,
                     const Tensor& labels) {
  check_rows(op, rows);
  const int64_t total = RnnSpec{.rows = rows}.total_rows();
  const Shape& shape = logits.shape();
  WISP_CHECK(shape.rank() == 2 && shape[0] == total && shape[1] > 0, op, ": logits are ", shape,
             ", expected (", total, ", C)");
  check_wide(op, logits);
  WISP_CHECK(labels.defined() && labels.shape().rank() == 2 && labels.shape()[0] == rows.front() &&
                 labels.dtype() == DType::i32,
             op, ": labels are ", labels.shape(), " ", name_of(labels.dtype()), ", expected (",
             rows.front(), ", L) i32");
}

Tensor first_rows(Context& context, const std::vector<int64_t>& rows) {
  const Tensor table = context.empty({std::ssize(rows) + 1}, DType::i64);
  TableWriter writer(context.stream, table.raw());
  int64_t row = 0;
  writer.put(row);
  for (const int64_t sequences : rows) writer.put(row += sequences);
  writer.finish();
  return table;
}

}  // namespace wisp
