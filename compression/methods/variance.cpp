// Variance-based compression: an element is sent once its mean is unambiguous, that is, large
// relative to its variance over samples; until then it waits. Per worker and element, with the
// gradient g and the sum q of squared micro-batch gradients (samples are approximated by
// micro-batches):
//   r <- r + g;   v <- v + q                                                        (1)
//   if r^2 > alpha v:  send r, then r, v <- 0;   else  v <- zeta v                   (2)
//   every worker: w <- w - lr * (sum over workers of what was sent)
// A sent element is a power of two and a position in one word (power_words.h). An element that is
// too small beside the field's largest is not sent and keeps its state. Source: Tsuzuku et al.
// 2018. Only abstract and introduction of the paper were available: (1), (2), alpha in {1, 1.5, 2},
// zeta = 0.999 and the word are reconstructed from memory. Certainly ours:
//   - the rounding error of a sent value stays in r, so that nothing is lost; with
//     compression.keep_rounding = false r is cleared, as in the paper;
//   - a field sends at most ceil(ratio n) elements, so that a message has a capacity: of the
//     elements that pass (2), the first in cyclic order from a drawn position; the others keep
//     r and v and pass again.
#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/power_words.h"
#include "compression/sparse/sparse_list.h"
#include "compression/wire_value.h"
#include "core/prefetch.h"

namespace wisp {
namespace {

/// Steps (1) and (2) except for sending, and the list of elements that pass.
struct AccumulateMoments {
  const float* gradient;  // this and the next three begin at the range
  const float* square;
  float* r;
  float* v;
  float alpha, zeta;
  float most;                // upper bound of v, so that alpha v is finite
  int64_t offset, position;  // begin of the range in arena and field
  int64_t capacity;
  int64_t* indices;
  uint32_t* positions;
  int64_t* listed;
  WISP_HD void prefetch(int64_t i) const {
    prefetch_ahead(gradient + i);
    prefetch_ahead(square + i);
    prefetch_ahead(r + i);
    prefetch_ahead(v + i);
  }
  WISP_HD bool operator()(int64_t i) const {
    const float mean = r[i] + gradient[i];
    const float sum = v[i] + square[i];
    const float variance = sum < most ? sum : most;
    const bool passes = mean * mean > alpha * variance;
    r[i] = mean;
    v[i] = passes ? variance : zeta * variance;
    return passes;
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    indices[at] = offset + i;
    positions[at] = static_cast<uint32_t>(position + i);
  }
  WISP_HD int64_t* count() const { return listed; }
};

/// The part of the pass for each range of a unit.
struct AccumulateRanges {
  power_words::Lists lists;
  const float* gradient;  // this and the next three are whole arenas
  const float* square;
  float* r;
  float* v;
  float alpha, zeta;
  WISP_HD AccumulateMoments operator()(int64_t at) const {
    const power_words::RangeRow& range = lists.range[at];
    const power_words::FieldRow& field = lists.field[range.field];
    return {gradient + range.offset,
            square + range.offset,
            r + range.offset,
            v + range.offset,
            alpha,
            zeta,
            kLargest<float> / (2.0f * alpha),
            range.offset,
            range.position,
            field.capacity,
            lists.index + field.entry,
            lists.position + field.entry,
            lists.listed + range.field};
  }
};

/// The waiting elements by arena index, and the effect of sending one.
struct Waiting {
  float* r;
  float* v;
  bool keep_rounding;
  WISP_HD float held(int64_t i) const { return r[i]; }
  WISP_HD void sent(int64_t i, float value) const {
    r[i] = keep_rounding ? r[i] - value : 0.0f;
    v[i] = 0.0f;
  }
};

class Variance final : public Compressor {
 public:
  explicit Variance(VarianceOptions options) : options_(options) {}

  Traits traits() const override { return {.squares = true, .sparse = true}; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}, {.name = "variance", .check = check_not_negative}};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return power_words::scratch_bytes(spec, info.ratio);
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return {.kind = Collective::all_gather,
            .bytes = power_words::capacity(spec, info.ratio),
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    const Stream& stream = context.stream;
    const auto lists = lay_out<power_words::Lists>(unit.scratch, unit.spec, info.ratio);
    auto* r = unit.state->tensors[0].data<float>();
    auto* v = unit.state->tensors[1].data<float>();
    const auto ranges = power_words::write_ranges(stream, unit.spec, info, lists);
    if (unit.finite) {
      parallel_select_ranges(
          stream, ranges,
          AccumulateRanges{lists, unit.gradient.data<float>(), unit.square.data<float>(), r, v,
                           static_cast<float>(options_.alpha), static_cast<float>(options_.zeta)});
    } else {  // send nothing and change no state
      power_words::clear_lists(stream, unit.spec, lists);
    }
    power_words::write(stream, unit.spec, info.ratio, lists, Waiting{r, v, options_.keep_rounding},
                       outlets[0]);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    clear_fields(context.stream, unit.spec, unit.gradient);
    power_words::add(context.stream, unit.spec, info.ratio, payloads, 1.0f, unit.gradient,
                     unit.scratch);
  }

  void release(Context& context, Unit& unit, const StepInfo&) override {
    hand_over(context, unit, unit.state->tensors[0], 1.0);
    clear_fields(context.stream, unit.spec, unit.state->tensors[1]);
  }

 private:
  VarianceOptions options_;
};

const CompressorRegistration variance_registration(
    "variance",
    "elements with a mean that is large for their variance, as powers of two (after the abstract "
    "of Tsuzuku et al. 2018)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks the keys of the ratio
      VarianceOptions options;
      config.bind("compression.alpha", options.alpha,
                  "variance: alpha of the criterion r^2 > alpha v, under which an element is sent, "
                  "1 or more; published 1, 1.5, 2");
      config.bind("compression.zeta", options.zeta,
                  "variance: decay of v in each step of waiting, in (0, 1]");
      config.bind("compression.keep_rounding", options.keep_rounding,
                  "variance: keep the rounding error of powers of two in the residual");
      return make_variance(options, config);
    });

}  // namespace

std::unique_ptr<Compressor> make_variance(const VarianceOptions& options, const Config& places) {
  places.expect(1.0 <= options.alpha && options.alpha <= 1e6, "compression.alpha", options.alpha,
                "1 to 1e6");
  places.expect(0.0 < options.zeta && options.zeta <= 1.0, "compression.zeta", options.zeta,
                "0 < zeta <= 1");
  return std::make_unique<Variance>(options);
}

}  // namespace wisp
