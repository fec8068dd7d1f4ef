// Deep Gradient Compression: momentum and residual accumulate on each worker, and only the largest
// accumulated values travel. Per worker, with gradient g (of the mean loss, over workers, clipped
// by the synchronizer), momentum u and residual v:
//   plain:    u <- m u + g;     v <- v + u
//   Nesterov: u <- m (u + g);   v <- v + (u + g)
//   send the top k of |v|;  v <- v without what was sent;  u <- 0 where sent (masking)
//   every worker: w <- w - lr * (sum over workers of what was sent)
// The sum needs no division: g is scaled by 1 / workers. Weight decay is local, before the
// momentum, g + decay w / workers: decaying after the exchange loses accuracy.
// Source: Lin et al. 2018, algorithm 4 and section 3; Nesterov, decay: the authors' code, Paddle's.
#include "compression/ratio_schedule.h"
#include "compression/slices.h"
#include "compression/sparse/sparse_code.h"
#include "core/prefetch.h"
#include "core/train/norm.h"

namespace wisp {
namespace {

/// Momentum correction, as the source of the selection's one pass.
struct Accumulate {
  const float* gradient;
  const float* weight;  // or gradient itself where nothing decays, to spare a read
  float decay;          // over workers
  float momentum;
  bool nesterov;
  bool masking;
  float* u;
  float* v;

  struct Next {
    float u, v;
  };
  WISP_HD Next next(int64_t i) const {
    const float g = gradient[i] + decay * weight[i];
    const float plain = momentum * u[i] + g;
    const float ahead = momentum * (u[i] + g);
    return nesterov ? Next{ahead, v[i] + (ahead + g)} : Next{plain, v[i] + plain};
  }
  WISP_HD void prefetch(int64_t i) const {
    prefetch_ahead(gradient + i);
    if (weight != gradient) prefetch_ahead(weight + i);
    prefetch_ahead(u + i);
    prefetch_ahead(v + i);
  }
  WISP_HD float peek(int64_t i) const { return next(i).v; }
  WISP_HD float take(int64_t i) const {
    const Next now = next(i);
    u[i] = now.u;
    v[i] = now.v;
    return now.v;
  }
  WISP_HD float held(int64_t i) const { return v[i]; }
  WISP_HD void sent(int64_t i, float part) const {
    v[i] = v[i] == part ? 0.0f : v[i] - part;
    if (masking) u[i] = 0.0f;
  }
};

struct Options {
  double momentum = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool masking = true;
};

class Dgc final : public Compressor {
 public:
  Dgc(SparseWire wire, const Selection& selection, Options options)
      : wire_(wire), selection_(selection), options_(options) {}

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
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return {.kind = Collective::all_gather,
            .bytes = wire_.capacity(spec, {info.ratio}),
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    if (!unit.finite) {  // zeros, and no state changes
      wire_.encode(
          context.stream, unit.spec, info, selection_, [](const Field&) { return Source{}; },
          outlets[0], unit.scratch);
      return;
    }
    const auto accumulate = [&](const Field& field) {
      const float* gradient = unit.gradient.data<float>();
      const bool decays = field.decay && options_.weight_decay > 0.0;
      return Accumulate{gradient,
                        decays ? unit.weight.data<float>() : gradient,
                        static_cast<float>(decays ? options_.weight_decay / info.workers : 0.0),
                        static_cast<float>(options_.momentum),
                        options_.nesterov,
                        options_.masking,
                        unit.momentum.data<float>(),
                        unit.state->tensors[0].data<float>()};
    };
    wire_.encode(context.stream, unit.spec, info, selection_, accumulate, outlets[0], unit.scratch);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    for (size_t i = 0; i < payloads.size(); ++i) {
      wire_.decode(context.stream, unit.spec, {info.ratio}, payloads[i], 1.0f, i > 0, unit.gradient,
                   unit.scratch);
    }
  }

  /// The optimizer's momentum, of the mean gradient and applied after the decay, becomes one
  /// worker's share of it.
  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    const double share = (options_.nesterov ? options_.momentum : 1.0) / info.workers;
    each_slice(unit.spec, [&](size_t, const Slice& slice, int64_t) {
      scale(context.stream, unit.momentum.slice(slice.offset, {slice.numel}), share);
    });
  }

 private:
  SparseWire wire_;
  Selection selection_;
  Options options_;
};

const CompressorRegistration registration(
    "dgc", "Deep Gradient Compression: momentum correction, top-k, masking (Lin et al. 2018)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks its keys
      Options options{setup.momentum, setup.weight_decay, setup.nesterov};
      config.bind("compression.masking", options.masking,
                  "clear the momentum of elements that were sent");
      const Selection selection = bind_selection(config);
      return std::make_unique<Dgc>(SparseWire(config), selection, options);
    });

}  // namespace
}  // namespace wisp
