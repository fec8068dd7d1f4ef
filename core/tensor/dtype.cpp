#include "core/tensor/dtype.h"

namespace wisp {

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  throw Error("size_of: not a dtype");
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::u32:
      return "u32";
  }
  throw Error("name_of: not a dtype");
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::u32}) {
    if (name == name_of(dtype)) return dtype;
  }
  throw Error(
      concat("unknown dtype '", name, "', expected f32, f64, f16, bf16, i32, i64, u8 or u32"));
}

}  // namespace wisp
