#include "compression/sparse/drawn_code.h"

#include <algorithm>

#include "compression/method_options.h"
#include "compression/ratio_schedule.h"
#include "compression/slices.h"

namespace wisp {

DrawnOptions bind_drawn(Config& config, const CompressorSetup& setup) {
  DrawnOptions options;
  options.least_ratio = RatioSchedule(config).final_ratio();
  options.values = bind_summed_values(config);
  options.shared = bind_shared(config, true);
  bool unbiased = true;
  config.bind("compression.unbiased", unbiased,
              "without error feedback: scale decoded values by total / kept, so that their mean is "
              "the encoded gradient");
  options.unbiased = unbiased && !setup.feedback;
  return options;
}

DrawnCode::DrawnCode(const DrawnOptions& options) : options_(options) {
  check_summed_values(options.values);
  check_least_ratio(options.least_ratio);
}

/// An element is sent with probability p = kept / numel and is then scaled by 1 / p. So the
/// variance is (1 / p - 1) of its square, whatever the joint distribution.
std::optional<double> DrawnCode::variance(const UnitSpec& spec) const {
  if (!options_.unbiased) return {};
  double most = 0.0;
  for (const Field& field : spec.fields) most = std::max(most, 1.0 / *least_share(field) - 1.0);
  return most;
}

std::optional<double> DrawnCode::least_share(const Field& field) const {
  return static_cast<double>(kept(field, options_.least_ratio)) / static_cast<double>(field.numel);
}

Message DrawnCode::message(const UnitSpec& spec, const StepInfo& info) const {
  const int64_t bytes = bytes_of(spec, info.ratio);
  if (!options_.shared) return {.kind = Collective::all_gather, .bytes = bytes};
  return {.kind = Collective::all_reduce, .dtype = options_.values, .bytes = bytes};
}

void DrawnCode::encode(Context& context, const Source& source, const UnitSpec& spec,
                       const StepInfo& info, const Outlet& outlet, std::byte*) const {
  outlet.expect("drawn code", bytes_of(spec, info.ratio));
  encode_drawn(context.stream, {*this, spec, info, info.rank}, source, outlet.data);
}

void DrawnCode::decode(Context& context, const Payload& payload, float weight, bool add,
                       const UnitSpec& spec, const StepInfo& info, Tensor into, std::byte*) const {
  payload.expect("drawn code", bytes_of(spec, info.ratio));
  decode_drawn(context.stream, {*this, spec, info, payload.from}, payload.data, weight, add, into);
}

int64_t DrawnCode::bytes_of(const UnitSpec& spec, double ratio) const {
  return size_of(options_.values) *
         sum_of_fields(spec, [&](const Field& field) { return kept(field, ratio); });
}

DrawnCode::Draw DrawnCode::draw_of(const Field& field, const StepInfo& info, int rank) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: ranks' ids lie far apart
  const uint64_t id =
      options_.shared ? field.key : field.key + kOdd * static_cast<uint64_t>(rank + 1);
  const auto step = static_cast<uint64_t>(info.step);
  const int64_t count = kept(field, info.ratio);
  const double scale =
      options_.unbiased ? static_cast<double>(field.numel) / static_cast<double>(count) : 1.0;
  return {.field = field,
          .kept = count,
          .random = Philox(info.seed, step, id),
          .dither = Dither(info.seed, step, id),
          .scale = static_cast<float>(scale)};
}

}  // namespace wisp
