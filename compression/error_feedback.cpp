#include "compression/error_feedback.h"

#include <utility>

#include "compression/hand_over.h"
#include "compression/momentum_correction.h"
#include "compression/slices.h"
#include "core/loops/parallel.h"
#include "core/loops/parallel_rows.h"
#include "core/train/norm.h"

namespace wisp {
namespace {

/// v <- m v + (1 - m) g; v takes the place of u.
struct Average {
  MomentumCorrection local;
  int64_t offset;  // arena index of the slice
  WISP_HD void operator()(int64_t i) const {
    float* v = local.u + offset;
    v[i] = local.momentum * v[i] + (1.0f - local.momentum) * local.g(offset + i);
  }
};

/// Replaces the gradient by the numbers to compress.
struct Correct {
  MomentumCorrection local;
  int64_t offset;  // arena index of the slice
  float* gradient;
  WISP_HD void operator()(int64_t i) const {
    const MomentumCorrection::Next next = local.next(offset + i);
    local.u[offset + i] = next.u;
    gradient[offset + i] = next.gradient;
  }
};

struct Multiple {
  const float* from;
  float factor;
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] = factor * from[i]; }
};

class ErrorFeedback final : public Compressor {
 public:
  ErrorFeedback(std::string method, std::unique_ptr<Code> code, const FeedbackOptions& options)
      : method_(std::move(method)),
        code_(std::move(code)),
        options_(options),
        traits_(code_->traits()) {
    options_.masking = options_.masking && traits_.sparse;
    if (options_.kind != Feedback::none || options_.correction) {
      traits_.clipping = Clipping::local_only;
    } else if (traits_.clipping == Clipping::local_only) {  // a code keeps nothing
      traits_.clipping = Clipping::better_local;
    }
    if (options_.kind != Feedback::ef21_sgdm && !options_.correction) return;
    traits_.momentum = traits_.decay = Home::compressor;
    traits_.result = UpdateRule::update;
  }

  Traits traits() const override { return traits_; }

  std::vector<StateSpec> state(const UnitSpec& spec, int) const override {
    if (options_.kind == Feedback::none) return {};
    check_variance(spec);
    if (options_.kind != Feedback::ef) {
      return {{.name = "tracked"},
              {.name = "tracked_sum", .sharing = Sharing::shared, .on_resize = OnResize::repeat}};
    }
    return {{.name = "residual"}};
  }

  std::string remark(const UnitSpec& spec) const override {
    const std::optional<double> variance = code_->variance(spec);
    if (!variance || options_.kind == Feedback::none) return {};
    return concat("error feedback is around an unbiased rounding, whose squared error may be ",
                  *variance,
                  " times the square of its input; compression.feedback = \"none\" converges too");
  }

  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return code_->scratch_bytes(spec, info);
  }
  int rounds(const UnitSpec& spec, const StepInfo& info) const override {
    return agrees(spec, info) ? 2 : 1;
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return round == 0 && agrees(spec, info) ? code_->agreement(spec, info)
                                            : code_->message(spec, info);
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    if (round == 0) prepare(context, unit, info);
    const Source source = source_of(unit, info);
    if (round == 0 && agrees(unit.spec, info)) {
      code_->propose(context, source, unit.spec, info, outlets[0], unit.scratch);
    } else {
      code_->encode(context, source, unit.spec, info, outlets[0], unit.scratch);
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    if (round == 0 && agrees(unit.spec, info))
      return code_->agree(context, payloads[0], unit.spec, info, unit.scratch);
    const bool tracks = options_.kind == Feedback::ef21 || options_.kind == Feedback::ef21_sgdm;
    const Tensor& into = tracks ? unit.state->tensors[1] : unit.gradient;
    code_->decode_sum(context, payloads, tracks, unit.spec, info, into, unit.scratch);
    if (tracks) leave_tracked(context, unit);
  }

  /// The optimizer's momentum is a sum of heavy-ball steps of the mean gradient. It becomes a
  /// worker's share of this sum, or of the average.
  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    if (traits_.momentum == Home::compressor)
      scale_momentum(context, unit, momentum_share(info.summands));
  }

  /// With momentum correction, the residual consists of updates. Through the optimizer's momentum m
  /// they would count 1 / (1 - m) times. ef21 has no unsent residual to hand over.
  void release(Context& context, Unit& unit, const StepInfo& info) override {
    if (traits_.momentum == Home::compressor)
      unscale_momentum(context, unit, momentum_share(info.summands));
    if (options_.kind != Feedback::ef) return;
    const double weight = options_.correction ? 1.0 - options_.local.momentum : 1.0;
    hand_over(context, unit, unit.state->tensors[0], weight * options_.gain(info));
  }

 private:
  /// Factor from the optimizer's momentum to a worker's share of the sum or of the average.
  double momentum_share(int summands) const {
    return options_.correction ? options_.local.share(summands)
                               : (1.0 - options_.local.momentum) / summands;
  }
  void check_variance(const UnitSpec& spec) const {
    const std::optional<double> variance = code_->variance(spec);
    WISP_CHECK(!variance || *variance < 1.0, method_,
               ": error feedback diverges with this code: the error of its unbiased rounding may "
               "be ",
               *variance, " times the square of what is encoded, expected less than 1; set ",
               "compression.feedback = \"none\" or, if the method knows the key, ",
               "compression.rounding = \"nearest\", more compression.levels or a smaller ",
               "compression.group");
  }

  bool agrees(const UnitSpec& spec, const StepInfo& info) const {
    return code_->agreement(spec, info).kind != Collective::none;
  }

  Source source_of(const Unit& unit, const StepInfo& info) const {
    Source source;
    if (!unit.finite) return source;
    source.gradient = options_.kind == Feedback::ef21_sgdm ? unit.momentum.data<float>()
                                                           : unit.gradient.data<float>();
    if (options_.correction && options_.masking) source.masked = unit.momentum.data<float>();
    if (options_.kind == Feedback::none) return source;
    source.kept = unit.state->tensors[0].data<float>();
    source.tracks = options_.kind != Feedback::ef;
    source.gain = options_.gain(info);
    return source;
  }

  /// Applies the momentum before encoding. Without a finite gradient, scales the residual instead.
  void prepare(Context& context, const Unit& unit, const StepInfo& info) const {
    if (unit.finite && traits_.momentum == Home::compressor) apply_momentum(context, unit, info);
    if (!unit.finite && options_.gain(info) != 1.0f) {
      each_slice(unit.spec, [&](size_t, const Slice& slice, int64_t) {
        scale(context.stream, unit.state->tensors[0].slice(slice.offset, {slice.numel}),
              options_.gain(info));
      });
    }
  }

  void apply_momentum(Context& context, const Unit& unit, const StepInfo& info) const {
    each_slice(unit.spec, [&](size_t f, const Slice& slice, int64_t) {
      const MomentumCorrection local = options_.local.correct(unit, unit.spec.fields[f], info);
      if (options_.correction) {
        parallel_for(context.stream, slice.numel,
                     Correct{local, slice.offset, unit.gradient.data<float>()});
      } else {
        parallel_for(context.stream, slice.numel, Average{local, slice.offset});
      }
    });
  }

  void leave_tracked(Context& context, const Unit& unit) const {
    const double factor =
        options_.kind == Feedback::ef21_sgdm ? 1.0 / (1.0 - options_.local.momentum) : 1.0;
    parallel_for_ranges(context.stream, ranges_of(unit.spec),
                        Multiple{unit.state->tensors[1].data<float>(), static_cast<float>(factor),
                                 unit.gradient.data<float>()});
  }

  std::string method_;
  std::unique_ptr<Code> code_;
  FeedbackOptions options_;
  Traits traits_;
};

}  // namespace

std::unique_ptr<Compressor> with_feedback(const std::string& method, std::unique_ptr<Code> code,
                                          const FeedbackOptions& options, const Config& places) {
  WISP_CHECK(options.kind != Feedback::ef21_sgdm || !options.local.nesterov,
             places.opening("compression.feedback"),
             "ef21_sgdm averages gradients and knows no Nesterov step; set optimizer.nesterov = "
             "false");
  WISP_CHECK(!options.correction || options.kind == Feedback::none || options.kind == Feedback::ef,
             places.opening("compression.momentum_correction"),
             "compression.momentum_correction is for compression.feedback = \"none\" or "
             "\"ef\"; ef21_sgdm has a momentum of its own");
  options.local.check();
  return std::make_unique<ErrorFeedback>(method, std::move(code), options);
}

CodeRegistration::CodeRegistration(const std::string& name, const std::string& summary,
                                   CodeRegistry::Factory make, Feedback published) {
  CodeRegistry::instance().add(name, summary, make);
  CompressorRegistry::instance().add(
      name, summary,
      [name, make = std::move(make), published](Config& config, CompressorSetup setup) {
        FeedbackOptions options = bind_feedback(config, setup, published);
        setup.feedback = options.kind != Feedback::none;
        std::unique_ptr<Code> code = make(config, setup);
        bind_correction(config, code->traits().sparse, options);
        return with_feedback(name, std::move(code), options, config);
      });
}

}  // namespace wisp
