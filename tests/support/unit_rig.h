// A unit of gradients of one worker, with a compressor that a test drives by hand: encode() returns
// the bytes to send, decode() takes those of all workers. One thread.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compression/compressor.h"
#include "tests/support/test_context.h"

namespace wisp {

using PayloadBytes = std::vector<std::byte>;

/// Fields of one slice each with the given sizes, and `gap` elements of padding between them.
inline std::vector<Field> layer_fields(const std::vector<int64_t>& sizes, int64_t gap = 3) {
  std::vector<Field> fields;
  int64_t offset = 0;
  for (const int64_t numel : sizes) {
    fields.push_back({{{offset, numel}}, numel, static_cast<uint64_t>(fields.size() + 1)});
    offset += numel + gap;
  }
  return fields;
}

/// One field of slices with the given sizes, with padding between them.
inline Field joined_field(const std::vector<int64_t>& sizes, int64_t gap = 3) {
  Field joined;
  joined.key = 1;
  for (const Field& field : layer_fields(sizes, gap)) {
    joined.slices.push_back(field.slices.front());
    joined.numel += field.numel;
  }
  return joined;
}

/// A field of two slices and a field of one slice, with padding between the slices.
inline std::vector<Field> two_fields(int64_t first, int64_t second, int64_t last) {
  std::vector<Field> fields = layer_fields({first, second, last});
  fields[0].slices.push_back(fields[1].slices[0]);
  fields[0].numel += second;
  fields.erase(fields.begin() + 1);
  return fields;
}

inline std::unique_ptr<Compressor> make_method(const std::string& name, const std::string& toml,
                                               const CompressorSetup& setup = {}) {
  Config config = Config::from_text(toml, "test.toml");
  auto made = CompressorRegistry::instance().find("compression method", name).make(config, setup);
  config.finish();
  return made;
}

class UnitRig {
 public:
  UnitRig(std::vector<Field> field_list, std::unique_ptr<Compressor> method)
      : fields(std::move(field_list)), compressor(std::move(method)) {
    unit.spec.fields = fields;
    int64_t arena = 0;
    for (const Field& field : fields) {
      unit.spec.numel += field.numel;
      arena = std::max(arena, field.slices.back().offset + field.slices.back().numel);
    }
    unit.gradient = Tensor({arena}, DType::f32);
    unit.weight = Tensor({arena}, DType::f32);
    unit.momentum = Tensor({arena}, DType::f32);
    unit.square = Tensor({arena}, DType::f32);
    for (const StateSpec& spec : compressor->state(unit.spec, 1))
      state.tensors.push_back(Tensor({arena}, spec.dtype));
    unit.state = &state;
  }

  float* gradient() { return unit.gradient.data<float>(); }
  float* weight() { return unit.weight.data<float>(); }
  float* momentum() { return unit.momentum.data<float>(); }
  float* square() { return unit.square.data<float>(); }
  float* residual() { return state.tensors.at(0).data<float>(); }

  PayloadBytes encode(const StepInfo& info) {
    const Message message = compressor->message(unit.spec, info, 0);
    scratch = Tensor({compressor->scratch_bytes(unit.spec, info)}, DType::u8);
    unit.scratch = scratch.raw();
    Tensor out({message.bytes}, DType::u8);
    int64_t used = message.bytes;
    const Outlet outlet{out.raw(), message.bytes, message.variable ? &used : nullptr};
    compressor->encode(test.context, unit, info, 0, {&outlet, 1});
    return {out.raw(), out.raw() + used};
  }

  /// Throws Error if a payload is malformed.
  void decode(const StepInfo& info, const std::vector<PayloadBytes>& payloads) {
    int64_t complaint = 0;
    std::vector<Tensor> aligned;
    std::vector<Payload> list;
    for (size_t from = 0; from < payloads.size(); ++from) {
      const auto bytes = static_cast<int64_t>(payloads[from].size());
      aligned.push_back(Tensor({bytes}, DType::u8));
      if (bytes > 0)
        std::memcpy(aligned.back().raw(), payloads[from].data(), payloads[from].size());
      list.push_back({static_cast<int>(from), aligned.back().raw(), bytes, &complaint});
    }
    scratch = Tensor({compressor->scratch_bytes(unit.spec, info)}, DType::u8);
    unit.scratch = scratch.raw();
    compressor->decode(test.context, unit, info, 0, list);
    WISP_CHECK(complaint == 0, complaint_in(complaint));
  }

  TestContext test;
  std::vector<Field> fields;
  std::unique_ptr<Compressor> compressor;
  State state;
  Unit unit;
  Tensor scratch;
};

}  // namespace wisp
