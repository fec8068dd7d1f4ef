#include "compression/sparse_options.h"

namespace wisp {

DType bind_summed_values(Config& config) {
  std::string values = "f32";
  config.bind("compression.values", values, "format of values on the wire: f32, f16 or bf16");
  config.offer("compression.values", {"f32", "f16", "bf16"});
  WISP_CHECK(
      values != "natural", config.where("compression.values"),
      ": values are summed on the wire, and a sum of natural values is not a natural value; use "
      "f32, f16 or bf16");
  if (values == "f16") return DType::f16;
  if (values == "bf16") return DType::bf16;
  config.expect(values == "f32", "compression.values", "'" + values + "'", "f32, f16 or bf16");
  return DType::f32;
}

void check_summed_values(DType values) {
  WISP_CHECK(values == DType::f32 || values == DType::f16 || values == DType::bf16,
             "values on the wire are ", name_of(values), ", expected f32, f16 or bf16");
}

void check_least_ratio(double least_ratio) {
  WISP_CHECK(0.0 < least_ratio && least_ratio <= 1.0, "least_ratio is ", least_ratio,
             ", expected 0 < least_ratio <= 1");
}

bool bind_shared(Config& config, bool by_default) {
  bool shared = by_default;
  config.bind_choice("compression.sharing", shared, {{"shared", true}, {"own", false}},
                     "positions that a rank sends: shared (the same on all ranks; values are "
                     "summed on the wire) or own (payloads are gathered)");
  return shared;
}

}  // namespace wisp
