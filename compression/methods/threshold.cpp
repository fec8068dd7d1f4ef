// A fixed threshold: elements of residual + gradient with a magnitude of tau or more are sent, and
// the rest stays in the residual. compression.ratio limits the share of sent elements: if more
// pass, only the largest are sent. So the payload varies, and its worst case is that of top-k.
// Source: Strom 2015 (who sends signs of tau, not the values); the limit is ours.
#include <cmath>

#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/sparse_code.h"

namespace wisp {
namespace {

const CodeRegistration threshold_registration(
    "threshold", "values of at least a fixed magnitude, with error feedback (after Strom 2015)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Code> {
      ThresholdOptions options;
      config.bind("compression.threshold", options.threshold,
                  "smallest magnitude of gradient / workers that is sent, above 0");
      options.least_ratio = RatioSchedule(config).final_ratio();
      options.values = bind_values(config);
      options.indices = bind_indices(config);
      return make_threshold(options, config);
    },
    Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_threshold(const ThresholdOptions& options, const Config& places) {
  const auto tau = static_cast<float>(options.threshold);
  places.expect(tau > 0.0f && std::isfinite(tau), "compression.threshold", options.threshold,
                "a positive 32-bit number");
  return make_sparse_code({options.values, options.indices},
                          {.kind = Selection::Kind::threshold, .threshold = tau},
                          options.least_ratio);
}

}  // namespace wisp
