// QSGD: each number becomes one of s levels of its group's norm, at random and unbiased. Source:
// Alistarh et al. 2017; the numbers of equations are ours:
//   (1) Q(v_i) = |v| sgn(v_i) xi_i
//   (2) xi_i = l / s, or (l + 1) / s with probability |v_i| s / |v| - l, l = floor(|v_i| s / |v|)
// Here |v| is the L2 norm, with E|Q(v) - v|² <= min(n / s², sqrt(n) / s) |v|²; or it is max |v_i|,
// as in the paper's runs. sgn(0) = 1, and a group of zeros stays zero. The paper's groups
// ("buckets") have 64 or 128 elements for 2 bits, 512 for 4 and 8 bits. It leaves tensors below 10
// 000 elements dense, for which the policy has max_numel. Default: 4 bits (7 levels and a sign),
// groups of 512, maximum; most of the paper's table 1 uses this setting. levels::take does (2),
// decoding does (1).
//
// A payload is f32 norm[groups], through all slices (without groups: norm[fields]), and then
//   fixed    each slice's levels in planes of 1 + ceil(log2(s + 1)) bits (levels.h)
//   elias    the levels that are not 0, in omega codes (elias_wire.h), of variable size
#include "compression/cursor.h"
#include "compression/methods/methods.h"
#include "compression/quantize/elias_wire.h"
#include "compression/slices.h"

namespace wisp {
namespace {

/// Scratch of a unit: for norms, if there are no groups; then for the wire.
struct QsgdScratch {
  std::byte* partials;
  Grid* grids;  // indexed by field
  std::byte* elias;

  QsgdScratch(Cursor& cursor, const UnitSpec& spec, bool grouped, int64_t elias_bytes)
      : partials(cursor.take<std::byte>(grouped ? 0 : scales_of_fields_bytes(spec.fields))),
        grids(cursor.take<Grid>(grouped ? 0 : std::ssize(spec.fields))),
        elias(cursor.take<std::byte>(elias_bytes)) {}
};

class QsgdCode final : public Code {
 public:
  QsgdCode(const LevelWire& wire, bool elias) : wire_(wire), elias_(elias) {}

  std::optional<double> variance(const UnitSpec& spec) const override {
    double variance = 0.0;
    for (const Field& field : spec.fields) {
      const int64_t numel = wire_.group > 0 ? std::min(wire_.group, field.numel) : field.numel;
      variance = std::max(variance, variance_of_levels(numel, wire_.levels, wire_.norm));
    }
    return variance;
  }

  Message message(const UnitSpec& spec, const StepInfo&) const override {
    const int64_t levels = elias_ ? EliasWire{wire_}.capacity(spec) : fixed_bytes(spec);
    return {.kind = Collective::all_gather, .bytes = 4 * norms(spec) + levels, .variable = elias_};
  }

  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return layout_bytes<QsgdScratch>(spec, wire_.group > 0, elias_bytes(spec));
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* memory) const override {
    outlet.expect("qsgd", message(spec, info).bytes);
    const Stream& stream = context.stream;
    auto* norm = reinterpret_cast<float*>(outlet.data);
    const auto scratch = lay_out<QsgdScratch>(memory, spec, wire_.group > 0, elias_bytes(spec));
    if (wire_.group == 0)
      scales_of_fields(stream, source, spec.fields, wire_.norm, wire_.levels, scratch.partials,
                       norm, scratch.grids);
    std::byte* out = outlet.data + 4 * norms(spec);
    if (elias_)
      return EliasWire{wire_}.encode(stream, source, spec, info, scratch.grids, norm, out,
                                     4 * norms(spec), outlet.used, scratch.elias);
    wire_.encode(stream, source, spec, info, false, scratch.grids, norm, out);
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* /*scratch*/) const override {
    const auto* norm = reinterpret_cast<const float*>(payload.data);
    const std::byte* in = payload.data + 4 * norms(spec);
    if (elias_) {
      WISP_CHECK(payload.bytes >= 4 * norms(spec), "qsgd: the payload of rank ", payload.from,
                 " has ", payload.bytes, " bytes, expected at least ", 4 * norms(spec));
      return EliasWire{wire_}.decode(context.stream, spec, norm, payload, 4 * norms(spec), weight,
                                     add, into.data<float>());
    }
    payload.expect("qsgd", message(spec, info).bytes);
    wire_.decode(context.stream, spec, norm, in, weight, add, into.data<float>());
  }

 private:
  int64_t norms(const UnitSpec& spec) const {
    if (wire_.group == 0) return std::ssize(spec.fields);
    return sum_of_slices(spec, [&](int64_t numel) { return wire_.groups(numel); });
  }
  int64_t fixed_bytes(const UnitSpec& spec) const {
    return sum_of_slices(spec, [&](int64_t numel) { return wire_.bytes(numel); });
  }
  int64_t elias_bytes(const UnitSpec& spec) const {
    return elias_ ? EliasWire{wire_}.scratch_bytes(spec) : 0;
  }

  LevelWire wire_;
  bool elias_;
};

std::unique_ptr<Code> bind_qsgd(Config& config, const CompressorSetup&) {
  QsgdOptions options;
  config.bind("compression.levels", options.levels, "qsgd: number of levels beside 0, at most 127");
  config.bind("compression.group", options.group,
              "elements that share a norm, a multiple of 64; 0: the whole field");
  config.bind_choice("compression.norm", options.l2, {{"max", false}, {"l2", true}},
                     "norm of a group: max or l2");
  config.bind_choice("compression.wire", options.elias, {{"fixed", false}, {"elias", true}},
                     "qsgd: encoding of levels, fixed (all levels, with the same number of bits) "
                     "or elias (nonzero levels, with variable bits)");
  return make_qsgd(options, config);
}

const CodeRegistration qsgd_registration(
    "qsgd",
    "multiples of a fraction of a group's norm, rounded at random (Alistarh et al. "
    "2017)",
    bind_qsgd, Feedback::none);

}  // namespace

std::unique_ptr<Code> make_qsgd(const QsgdOptions& options, const Config& places) {
  places.expect(1 <= options.levels && options.levels <= 127, "compression.levels", options.levels,
                "1 to 127");
  places.expect(0 <= options.group && options.group <= 1 << 20 && options.group % group::kSize == 0,
                "compression.group", options.group,
                concat("a multiple of ", group::kSize, " up to ", 1 << 20, ", or 0"));
  return std::make_unique<QsgdCode>(
      LevelWire{options.levels, options.group, options.l2 ? Norm::euclidean : Norm::largest},
      options.elias);
}

}  // namespace wisp
