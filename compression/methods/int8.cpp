// Integers of a scale: int8 sends levels -127 … 127, int4 -7 … 7, of max |x| of the field. With a
// scale that all workers agreed on, sums of integers are integers of the same scale, so the wire
// adds them and they are decoded once. Jang et al. 2017, "Homomorphic parameter compression", ask a
// code for this property; the paper has no method, and wire and widths are ours. Random rounding is
// unbiased. Rounding to nearest has a smaller error and needs error feedback. The integers travel
// as in scaled_integers.h.
#include "compression/methods/methods.h"

namespace wisp {
namespace {

ScaledIntegerOptions bind_int(Config& config, const CompressorSetup& setup) {
  ScaledIntegerOptions options;
  options.bind_scaler(config, setup);
  config.bind_choice("compression.rounding", options.nearest,
                     {{"stochastic", false}, {"nearest", true}},
                     "rounding of integers: stochastic (no bias), or nearest (for "
                     "compression.feedback = \"ef\")");
  return options;
}

const CodeRegistration int8(
    "int8", "8-bit integers with one scale per field, summed on the wire if that sends less",
    [](Config& config, const CompressorSetup& setup) { return make_int8(bind_int(config, setup)); },
    Feedback::none);
const CodeRegistration int4(
    "int4", "4-bit integers with one scale per field, summed on the wire if that sends less",
    [](Config& config, const CompressorSetup& setup) { return make_int4(bind_int(config, setup)); },
    Feedback::none);

}  // namespace

std::unique_ptr<Code> make_int8(const ScaledIntegerOptions& options) {
  return std::make_unique<ScaledIntegers>("int8", 127, false, options);
}
std::unique_ptr<Code> make_int4(const ScaledIntegerOptions& options) {
  return std::make_unique<ScaledIntegers>("int4", 7, false, options);
}

}  // namespace wisp
