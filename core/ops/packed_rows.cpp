#include "core/ops/packed_rows.h"

#include "core/loops/device_table.h"

namespace wisp {

Tensor first_rows(Context& context, const std::vector<int64_t>& rows) {
  const Tensor table = context.empty({std::ssize(rows) + 1}, DType::i64);
  TableWriter writer(context.stream, table.raw());
  int64_t row = 0;
  writer.put(row);
  for (const int64_t sequences : rows) {
    row += sequences;
    writer.put(row);
  }
  writer.finish();
  return table;
}

}  // namespace wisp
