#include "compression/method_options.h"

namespace wisp {

int64_t bind_start_after(Config& config, int64_t published) {
  int64_t updates = published;
  config.bind("compression.start_after", updates,
              "number of dense updates before the first compressed one");
  return updates;
}

void check_start_after(int64_t updates, const Config& places) {
  places.expect(updates >= 0, "compression.start_after", updates, "0 or more");
}

bool bind_sampled(Config& config) {
  bool sampled = false;
  config.bind_choice("compression.selection", sampled, {{"exact", false}, {"sampled", true}},
                     "search for the k largest: exact, or sampled (0.8 k to k by a sampled "
                     "threshold)");
  return sampled;
}

WireFormat bind_values(Config& config) {
  WireFormat values = WireFormat::f32;
  config.bind_choice("compression.values", values,
                     {{"f32", WireFormat::f32},
                      {"f16", WireFormat::f16},
                      {"bf16", WireFormat::bf16},
                      {"natural", WireFormat::natural}},
                     "format of a sparse method's values on the wire: f32, f16, bf16, or natural "
                     "(sign and nearest power of two, 9 bits)");
  return values;
}

Indices bind_indices(Config& config) {
  Indices indices = Indices::shortest;
  config.bind_choice("compression.indices", indices,
                     {{"auto", Indices::shortest},
                      {"runs16", Indices::runs16},
                      {"u32", Indices::u32},
                      {"gamma", Indices::gamma},
                      {"bitmap", Indices::bitmap}},
                     "format of a sparse method's positions on the wire: runs16, u32, gamma, "
                     "bitmap, or auto (the shortest at this ratio)");
  return indices;
}

DType bind_summed_values(Config& config) {
  const std::string key = "compression.values";
  const std::string meaning = "format of values on the wire: f32, f16 or bf16";
  std::string word = "f32";
  config.bind(key, word, meaning);  // before bind_choice, which would only list the words
  WISP_CHECK(
      word != "natural", config.where(key),
      ": values are summed on the wire, and a sum of natural values is not a natural value; use "
      "f32, f16 or bf16");
  DType values = DType::f32;
  config.bind_choice(key, values, {{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}},
                     meaning);
  return values;
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
