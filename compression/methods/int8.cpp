// Integers of a scale: int8 sends levels -127 … 127, int4 -7 … 7, of max |x| of the field. With a
// scale that all workers agreed on, sums of integers are integers of the same scale, so the wire
// adds them and they are decoded once. Jang et al. 2017, "Homomorphic parameter compression", ask a
// code for this property; the paper has no method, and wire and widths are ours. Random rounding is
// unbiased. Rounding to nearest has a smaller error and needs error feedback. The integers travel
// as in scaled_integers.h.
#include "compression/error_feedback.h"
#include "compression/quantize/scaled_integers.h"

namespace wisp {
namespace {

std::unique_ptr<Code> make_int(ScaledIntegerOptions options, Config& config,
                               const CompressorSetup& setup) {
  options.bind_scaler(config, setup);
  std::string rounding = "stochastic";
  config.bind("compression.rounding", rounding,
              "rounding of integers: stochastic (no bias), or nearest (for compression.feedback = "
              "\"ef\")");
  WISP_CHECK(rounding == "stochastic" || rounding == "nearest",
             config.where("compression.rounding"), ": compression.rounding is '", rounding,
             "', expected stochastic or nearest");
  options.nearest = rounding == "nearest";
  options.dense_1d = false;
  return std::make_unique<ScaledIntegers>(std::move(options));
}

const CodeRegistration int8(
    "int8", "8-bit integers with one scale per field, summed on the wire if that sends less",
    [](Config& config, const CompressorSetup& setup) {
      return make_int({.name = "int8", .levels = 127}, config, setup);
    },
    Feedback::none);
const CodeRegistration int4(
    "int4", "4-bit integers with one scale per field, summed on the wire if that sends less",
    [](Config& config, const CompressorSetup& setup) {
      return make_int({.name = "int4", .levels = 7}, config, setup);
    },
    Feedback::none);

}  // namespace
}  // namespace wisp
