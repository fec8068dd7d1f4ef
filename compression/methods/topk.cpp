// Top-k: the k largest values of each field are sent with their positions, and the rest stays in
// the residual. Selects exactly k, or all that are not zero; or about k by a sampled threshold
// (select.h). Source: Aji & Heafield 2017 (gradient dropping, by field); Stich et al. 2018; Lin et
// al. 2018, section 3.1 (sampled).
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/sparse_code.h"

namespace wisp {
namespace {

const CodeRegistration topk_registration(
    "topk", "top-k values and their positions, with error feedback (Stich et al. 2018)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Code> {
      return make_topk({.sampled = bind_sampled(config),
                        .least_ratio = RatioSchedule(config).final_ratio(),
                        .values = bind_values(config),
                        .indices = bind_indices(config)});
    },
    Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_topk(const TopkOptions& options) {
  return make_sparse_code({options.values, options.indices}, Selection::largest(options.sampled),
                          options.least_ratio);
}

}  // namespace wisp
