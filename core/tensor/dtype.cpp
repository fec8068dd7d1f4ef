#include "core/tensor/dtype.h"

#include <iterator>

namespace wisp {
namespace {

struct TypeFacts {
  const char* name;
  int64_t bytes;
};
constexpr TypeFacts kTypes[] = {{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2},  // as in DType
                                {"i32", 4}, {"i64", 8}, {"u8", 1},  {"u32", 4}};

const TypeFacts& facts_of(const char* what, DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  WISP_CHECK(index < std::size(kTypes), what, ": not a dtype");
  return kTypes[index];
}

}  // namespace

int64_t size_of(DType dtype) { return facts_of("size_of", dtype).bytes; }

const char* name_of(DType dtype) { return facts_of("name_of", dtype).name; }

DType dtype_named(const std::string& name) {
  for (size_t index = 0; index < std::size(kTypes); ++index)
    if (name == kTypes[index].name) return static_cast<DType>(index);
  throw Error(
      concat("unknown dtype '", name, "', expected f32, f64, f16, bf16, i32, i64, u8 or u32"));
}

}  // namespace wisp
