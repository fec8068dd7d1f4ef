#include "compression/quantize/scaled_integers.h"

#include <algorithm>

#include "compression/cursor.h"
#include "compression/field_reduce.h"
#include "compression/slices.h"

namespace wisp {
namespace {

/// Scratch of a unit.
struct Scratch {
  Grid* grid;         // indexed by field
  float* own;         // scale of each field
  std::byte* scales;  // scratch of own_scales

  Scratch(Cursor& cursor, int64_t fields, int64_t scales_bytes)
      : grid(cursor.take<Grid>(fields)),
        own(cursor.take<float>(fields)),
        scales(cursor.take<std::byte>(scales_bytes)) {}
};

struct SetScale {
  float* scale;
  WISP_HD void operator()(int64_t f, int64_t, float largest) const { scale[f] = largest; }
};

/// Grids for an agreed scale: a worker clips to its own scale, and rounds to the levels of the
/// agreed one.
struct AgreeOn {
  const float* scale;
  const float* own;
  int levels;
  Grid* grid;
  WISP_HD void operator()(int64_t f) const {
    grid[f] = Grid::of(static_cast<double>(scale[f]), levels);
    const float most = own[f] * grid[f].per_unit;
    grid[f].most = most < grid[f].most ? most : grid[f].most;
  }
};

int64_t fields_of(const UnitSpec& spec) { return static_cast<int64_t>(spec.fields.size()); }

}  // namespace

void ScaledIntegerOptions::bind_scaler(Config& config, const CompressorSetup& setup) {
  config.bind_choice(
      "compression.scaler", scales,
      {{"auto", Scales::automatic}, {"shared", Scales::shared}, {"own", Scales::own}},
      "scale of integers: shared (agreed on; integers are summed on the wire), own (payloads are "
      "gathered), or auto (the one that sends less with this number of workers)");
  WISP_CHECK(scales != Scales::shared || !setup.alone, config.where("compression.scaler"),
             ": compression.scaler is 'shared', but neighbours in gossip cannot agree on a scale; "
             "expected auto or own");
  if (setup.alone) scales = Scales::own;
  workers = setup.workers;
}

bool ScaledIntegers::shares(int ranks, int summands) const {
  if (options_.scales != Scales::automatic) return options_.scales == Scales::shared;
  return ranks * Lanes(summands, levels_).each * LevelWire{levels_}.width() > 64;
}

/// For a shared scale, the bound covers the numbers of all workers together.
std::optional<double> ScaledIntegers::variance(const UnitSpec& spec) const {
  if (options_.nearest) return {};
  const bool shared = shares(options_.workers, options_.workers);
  double variance = 0.0;
  for (const Field& field : spec.fields) {
    const int64_t numel = field.numel * (shared ? options_.workers : 1);
    variance = std::max(variance, variance_of_levels(numel, levels_, Norm::largest));
  }
  return variance;
}

void ScaledIntegers::own_scales(const Stream& stream, const Source& source, const UnitSpec& spec,
                                std::byte* scratch, float* scale) const {
  reduce_fields(stream, spec.fields, LargestOf{source},
                lay_out<FieldPartials<float>>(scratch, spec.fields), SetScale{scale});
}

int64_t ScaledIntegers::own_scales_bytes(const UnitSpec& spec) const {
  return layout_bytes<FieldPartials<float>>(spec.fields);
}

int64_t ScaledIntegers::scratch_bytes(const UnitSpec& spec, const StepInfo&) const {
  return layout_bytes<Scratch>(fields_of(spec), own_scales_bytes(spec));
}

Message ScaledIntegers::agreement(const UnitSpec& spec, const StepInfo& info) const {
  if (!shares(info)) return {};
  return {.kind = Collective::all_reduce,
          .dtype = DType::f32,
          .op = ReduceOp::max,
          .bytes = 4 * fields_of(spec)};
}

void ScaledIntegers::propose(Context& context, const Source& source, const UnitSpec& spec,
                             const StepInfo&, const Outlet& outlet, std::byte* memory) const {
  const auto scratch = lay_out<Scratch>(memory, fields_of(spec), own_scales_bytes(spec));
  own_scales(context.stream, source, spec, scratch.scales, scratch.own);
  parallel_for(context.stream, fields_of(spec),
               CopyAll<float>{scratch.own, reinterpret_cast<float*>(outlet.data)});
}

void ScaledIntegers::agree(Context& context, const Payload& payload, const UnitSpec& spec,
                           const StepInfo&, std::byte* memory) const {
  WISP_CHECK(payload.bytes == 4 * fields_of(spec), name_, ": the agreed scales have ",
             payload.bytes, " bytes, expected ", 4 * fields_of(spec));
  const auto scratch = lay_out<Scratch>(memory, fields_of(spec), own_scales_bytes(spec));
  parallel_for(
      context.stream, fields_of(spec),
      AgreeOn{reinterpret_cast<const float*>(payload.data), scratch.own, levels_, scratch.grid});
}

int64_t ScaledIntegers::bytes(const UnitSpec& spec, const StepInfo& info) const {
  if (!shares(info))
    return 4 * fields_of(spec) +
           sum_of_slices(spec, [&](int64_t numel) { return LevelWire{levels_}.bytes(numel); });
  const Lanes lanes(info.summands, levels_);
  return 4 * sum_of_slices(spec, [&](int64_t numel) { return lanes.words(numel); });
}

Message ScaledIntegers::message(const UnitSpec& spec, const StepInfo& info) const {
  if (!shares(info)) return {.kind = Collective::all_gather, .bytes = bytes(spec, info)};
  return {.kind = Collective::all_reduce, .dtype = DType::u32, .bytes = bytes(spec, info)};
}

void ScaledIntegers::encode(Context& context, const Source& source, const UnitSpec& spec,
                            const StepInfo& info, const Outlet& outlet, std::byte* memory) const {
  outlet.expect(name_, bytes(spec, info));
  const auto scratch = lay_out<Scratch>(memory, fields_of(spec), own_scales_bytes(spec));
  if (shares(info))
    return Lanes(info.summands, levels_)
        .encode(context.stream, source, spec, info, options_.nearest, scratch.grid,
                reinterpret_cast<uint32_t*>(outlet.data));
  auto* scale = reinterpret_cast<float*>(outlet.data);
  own_scales(context.stream, source, spec, scratch.scales, scale);
  parallel_for(context.stream, fields_of(spec), AgreeOn{scale, scale, levels_, scratch.grid});
  LevelWire{levels_}.encode(context.stream, source, spec, info, options_.nearest, scratch.grid,
                            nullptr, outlet.data + 4 * fields_of(spec));
}

void ScaledIntegers::decode(Context& context, const Payload& payload, float weight, bool add,
                            const UnitSpec& spec, const StepInfo& info, Tensor into,
                            std::byte* memory) const {
  payload.expect(name_, bytes(spec, info));
  float* arena = into.data<float>();
  if (shares(info)) {
    const auto scratch = lay_out<Scratch>(memory, fields_of(spec), own_scales_bytes(spec));
    return Lanes(info.summands, levels_)
        .decode(context.stream, spec, reinterpret_cast<const uint32_t*>(payload.data), scratch.grid,
                weight, add, arena);
  }
  LevelWire{levels_}.decode(context.stream, spec, reinterpret_cast<const float*>(payload.data),
                            payload.data + 4 * fields_of(spec), weight, add, arena);
}

}  // namespace wisp
