#include "compression/unit_rows.h"

#include "compression/slices.h"

namespace wisp {

UnitRows::UnitRows(Cursor& cursor, const UnitSpec& spec)
    : field(cursor.take<OfField>(std::ssize(spec.fields))),
      slice(cursor.take<OfSlice>(
          sum_of_fields(spec, [](const Field& of) { return std::ssize(of.slices); }))) {}

TableWriter UnitRows::table(const Stream& stream, const UnitSpec& spec) const {
  TableWriter table(stream, field);
  int64_t first = 0;
  for (const Field& of : spec.fields) {
    table.put(OfField{of.numel, first, std::ssize(of.slices)});
    first += std::ssize(of.slices);
  }
  each_slice(spec, [&](size_t, const Slice& of, int64_t position) {
    table.put(OfSlice{position, of.offset - position});
  });
  return table;
}

}  // namespace wisp
