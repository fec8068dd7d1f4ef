// Deep Gradient Compression: momentum and residual accumulate on each worker, and only the largest
// accumulated values are sent. Per worker, with gradient g (of the mean loss / workers, clipped by
// the synchronizer), momentum u and residual v:
//   plain:    u <- m u + g;     v <- v + u           (momentum_correction.h)
//   Nesterov: u <- m (u + g);   v <- v + (u + g)
//   send the top k of |v|;  v <- v without what was sent;  u <- 0 where sent (masking)
//   every worker: w <- w - lr * (sum over workers of what was sent)
// The sum needs no division, because g is scaled by 1 / workers. Source: Lin et al. 2018, algorithm
// 4 and section 3.
#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/pack.h"
#include "core/prefetch.h"

namespace wisp {
namespace {

/// Momentum correction as a Source for the one pass of the selection.
struct AccumulateMomentum {
  MomentumCorrection local;
  bool masking;
  float* v;

  WISP_HD void prefetch(int64_t i) const {
    prefetch_ahead(local.gradient + i);
    if (local.weight != local.gradient) prefetch_ahead(local.weight + i);
    prefetch_ahead(local.u + i);
    prefetch_ahead(v + i);
  }
  WISP_HD float peek(int64_t i) const { return v[i] + local.next(i).gradient; }
  WISP_HD float take(int64_t i) const {
    const MomentumCorrection::Next now = local.next(i);
    local.u[i] = now.u;
    v[i] += now.gradient;
    return v[i];
  }
  WISP_HD float held(int64_t i) const { return v[i]; }
  WISP_HD void sent(int64_t i, float part) const {
    v[i] = v[i] == part ? 0.0f : v[i] - part;
    if (masking) local.u[i] = 0.0f;
  }
};

class Dgc final : public Compressor {
 public:
  explicit Dgc(const DgcOptions& options)
      : wire_(options.values, options.indices),
        selection_(Selection::largest(options.sampled)),
        options_(options) {}

  Traits traits() const override {
    return {.momentum = Home::compressor,
            .decay = Home::compressor,
            .result = UpdateRule::update,
            .sparse = true};
  }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return wire_.encode_bytes(spec, {info.ratio}, selection_.kind);
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return {.kind = Collective::all_gather,
            .bytes = wire_.capacity(spec, {info.ratio}),
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    if (!unit.finite) {  // send zeros and change no state
      wire_.encode(
          context.stream, unit.spec, info, selection_, [](const Field&) { return Source{}; },
          outlets[0], unit.scratch);
      return;
    }
    const auto accumulate = [&](const Field& field) {
      MomentumCorrection local = options_.local.correct(unit, field, info);
      if (local.decay == 0.0f) local.weight = local.gradient;  // saves a read
      return AccumulateMomentum{local, options_.masking, unit.state->tensors[0].data<float>()};
    };
    wire_.encode(context.stream, unit.spec, info, selection_, accumulate, outlets[0], unit.scratch);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    wire_.decode(context.stream, unit.spec, {info.ratio}, payloads, 1.0f, false, unit.gradient,
                 unit.scratch);
  }

  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    scale_momentum(context, unit, options_.local.share(info.summands));
  }
  /// v consists of updates: through the optimizer's momentum m it would count 1 / (1 - m) times.
  void release(Context& context, Unit& unit, const StepInfo& info) override {
    unscale_momentum(context, unit, options_.local.share(info.summands));
    hand_over(context, unit, unit.state->tensors[0], 1.0 - options_.local.momentum);
  }

 private:
  SparseWire wire_;
  Selection selection_;
  DgcOptions options_;
};

const CompressorRegistration dgc_registration(
    "dgc", "Deep Gradient Compression: momentum correction, top-k, masking (Lin et al. 2018)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks the keys of the ratio
      DgcOptions options{.local = local_momentum(setup)};
      config.bind("compression.masking", options.masking,
                  "clear the momentum of elements that were sent");
      options.sampled = bind_sampled(config);
      options.values = bind_values(config);
      options.indices = bind_indices(config);
      return make_dgc(options);
    });

}  // namespace

std::unique_ptr<Compressor> make_dgc(const DgcOptions& options) {
  options.local.check();
  return std::make_unique<Dgc>(options);
}

}  // namespace wisp
