#include "compression/error_feedback.h"

#include <utility>

namespace wisp {
namespace {

class ErrorFeedback final : public Compressor {
 public:
  ErrorFeedback(std::unique_ptr<Code> code, Feedback feedback, Traits traits)
      : code_(std::move(code)), feedback_(feedback), traits_(std::move(traits)) {}

  Traits traits() const override { return traits_; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    if (feedback_ == Feedback::none) return {};
    return {{.name = "residual"}};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return code_->scratch_bytes(spec, info);
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return code_->message(spec, info);
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    Source source;
    if (unit.finite) {
      source.gradient = unit.gradient.data<float>();
      if (feedback_ == Feedback::ef) source.residual = unit.state->tensors[0].data<float>();
    }
    code_->encode(context, source, unit.spec, info, outlets[0], unit.scratch);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    for (size_t i = 0; i < payloads.size(); ++i) {
      code_->decode(context, payloads[i], 1.0f, i > 0, unit.spec, info, unit.gradient,
                    unit.scratch);
    }
  }

 private:
  std::unique_ptr<Code> code_;
  Feedback feedback_;
  Traits traits_;
};

}  // namespace

std::unique_ptr<Compressor> with_feedback(std::unique_ptr<Code> code, Feedback feedback,
                                          Traits traits) {
  return std::make_unique<ErrorFeedback>(std::move(code), feedback, std::move(traits));
}

Feedback bind_feedback(Config& config, Feedback published) {
  std::string choice = "auto";
  config.bind("compression.feedback", choice,
              "error feedback: none, ef, or auto (what the method was published with)");
  if (choice == "auto") return published;
  if (choice == "ef") return Feedback::ef;
  WISP_CHECK(choice == "none", config.where("compression.feedback"), ": compression.feedback is '",
             choice, "', expected auto, none or ef");
  return Feedback::none;
}

}  // namespace wisp
