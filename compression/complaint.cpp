#include "compression/complaint.h"

#include "core/base/error.h"

namespace wisp {
namespace {

std::string what_is_wrong(const Complaint& complaint) {
  const int64_t number = complaint.number;
  switch (complaint.what) {
    case Wrong::count:
      return concat("has ", number, " entries, which do not fit the field or the payload");
    case Wrong::end:
      return concat("ends at byte ", number, ", expected the payload's last");
    case Wrong::scale:
      return "has an invalid scale";
    case Wrong::code:
      return concat("has an invalid sequence of codes in chunk ", number);
    case Wrong::position:
      return concat("has entry ", number, " after its last element");
    case Wrong::order:
      return concat("has entry ", number, " out of order");
  }
  return "is not well-formed";
}

}  // namespace

Complaint Complaint::of(int64_t word) {
  const int64_t key = INT64_MAX - word;
  const auto bits = [key](int from, int count) {
    return key >> from & ((int64_t{1} << count) - 1);
  };
  return {bits(49, 14) - 1, bits(31, 14), static_cast<Wrong>(bits(45, 4)), bits(0, 31)};
}

std::string complaint_in(int64_t word) {
  if (word == 0) return {};
  const Complaint complaint = Complaint::of(word);
  return concat("the payload of rank ", complaint.from, ": field ", complaint.field, " ",
                what_is_wrong(complaint));
}

}  // namespace wisp
