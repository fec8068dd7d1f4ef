// Signs with the mean magnitude as their scale, per field of d elements, with sgn(0) = +1:
//   p = e + g;   D = (|p|_1 / d) sgn(p);   e <- p - D;   send D     (e: the residual)
// Wire: a scale (f32) for each field; then for each slice a bit per element, 1 for +.
//   bytes = 4 fields + Σ over slices ceil(numel / 8)
// Source: Karimireddy et al. 2019, algorithm 1 (here the learning rate is outside e, unless
// compression.residual = "update"); with several workers, the mean of their D.
#include "compression/cursor.h"
#include "compression/field_reduce.h"
#include "compression/methods/methods.h"
#include "compression/quantize/sign_plane.h"
#include "compression/slices.h"

namespace wisp {
namespace {

struct SetMean {
  float* scale;
  WISP_HD void operator()(int64_t f, int64_t numel, double sum) const {
    scale[f] = static_cast<float>(sum / static_cast<double>(numel));
  }
};

struct WriteSigns {
  using Shared = group::Codes;
  Source source;
  int64_t offset;
  const float* scale;
  Plane<1> plane;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t group, Shared& positive) const {
    const float high = *scale;
    group::by_kind(source, [&](const Source& kind) {
      send_signs(team, kind, offset, plane, group, -high, high, positive);
    });
  }
};

class EfSign final : public Code {
 public:
  Traits traits() const override { return {.dense_1d = false, .represents_zero = false}; }

  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_gather, .bytes = bytes(spec)};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return layout_bytes<FieldPartials<double>>(spec.fields);
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo&,
              const Outlet& outlet, std::byte* memory) const override {
    outlet.expect("ef_signsgd", bytes(spec));
    auto* scale = reinterpret_cast<float*>(outlet.data);
    reduce_fields(context.stream, spec.fields, MagnitudesOf{source},
                  lay_out<FieldPartials<double>>(memory, spec.fields), SetMean{scale});
    std::byte* bits = outlet.data + scales_bytes(spec);
    SmallTeams<WriteSigns> signs(context.stream);
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t) {
      signs.add(Plane<1>::groups(slice.numel),
                {source, slice.offset, scale + f, {bits, slice.numel}}, group::kSize);
      bits += Plane<1>::bytes(slice.numel);
    });
    signs.finish();
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo&, Tensor into, std::byte*) const override {
    payload.expect("ef_signsgd", bytes(spec));
    const auto* scale = reinterpret_cast<const float*>(payload.data);
    const std::byte* bits = payload.data + scales_bytes(spec);
    SmallTeams<ReadSigns> signs(context.stream);
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t) {
      signs.add(Plane<1>::groups(slice.numel),
                {{bits, slice.numel}, scale + f, weight, add, into.data<float>() + slice.offset},
                group::kSize);
      bits += Plane<1>::bytes(slice.numel);
    });
    signs.finish();
  }

 private:
  static int64_t scales_bytes(const UnitSpec& spec) { return 4 * std::ssize(spec.fields); }
  static int64_t bytes(const UnitSpec& spec) { return scales_bytes(spec) + signs_bytes(spec); }
};

const CodeRegistration ef_signsgd_registration(
    "ef_signsgd",
    "signs scaled by the mean magnitude, with error feedback (Karimireddy et al. 2019)",
    [](Config&, const CompressorSetup&) { return make_ef_signsgd(); }, Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_ef_signsgd() { return std::make_unique<EfSign>(); }

}  // namespace wisp
