// A fixed threshold: elements of residual + gradient with a magnitude of tau or more are sent, and
// the rest stays in the residual. compression.ratio limits the share of sent elements: if more
// pass, only the largest are sent. So the payload varies, and its worst case is that of top-k.
// Source: Strom 2015 (who sends signs of tau, not the values); the limit is ours.
#include <cmath>

#include "compression/error_feedback.h"
#include "compression/sparse/sparse_code.h"

namespace wisp {
namespace {

const CodeRegistration threshold_registration(
    "threshold", "values of at least a fixed magnitude, with error feedback (after Strom 2015)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Code> {
      double threshold = 1e-3;
      config.bind("compression.threshold", threshold,
                  "smallest magnitude of gradient / workers that is sent, above 0");
      const auto tau = static_cast<float>(threshold);
      WISP_CHECK(tau > 0.0f && std::isfinite(tau), config.where("compression.threshold"),
                 ": compression.threshold is ", threshold, ", expected a positive 32-bit number");
      return make_sparse_code(config, {.kind = Selection::Kind::threshold, .threshold = tau});
    },
    Feedback::ef);

}  // namespace
}  // namespace wisp
