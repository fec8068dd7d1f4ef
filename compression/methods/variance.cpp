// Variance-based compression: an element travels once its mean is unambiguous, that is, large
// against its variance over samples; until then it waits. Per worker and element, with the gradient
// g and the sum q of squared micro-batch gradients (samples are approximated by micro-batches):
//   r <- r + g;   v <- v + q                                                        (1)
//   if r^2 > alpha v:  send r, then r, v <- 0;   else  v <- zeta v                   (2)
//   every worker: w <- w - lr * (sum over workers of what was sent)
// What is sent is a power of two and a position in one word (power_words.h); what is too small
// beside the field's largest does not travel and stays as it is.
// Source: Tsuzuku et al. 2018. Of the paper only abstract and introduction were at hand: (1), (2),
// alpha in {1, 1.5, 2}, zeta = 0.999 and the word are reconstructed from memory. Ours for certain:
//   - what rounding took from a value stays in r, so that nothing is lost; with
//     compression.keep_rounding = false r is cleared, as in the paper;
//   - a field sends at most ceil(ratio n) elements, so that a message has a capacity: of those that
//     pass (2) the first in cyclic order from a drawn position; the others keep r and v and pass
//     again.
#include <limits>

#include "compression/ratio_schedule.h"
#include "compression/sparse/power_words.h"
#include "compression/sparse/sparse_list.h"
#include "core/prefetch.h"

namespace wisp {
namespace {

struct Options {
  double alpha = 1.0;
  double zeta = 0.999;
  bool keep_rounding = true;
};

/// (1), (2) but for what is sent, and the list of what passes.
struct Accumulate {
  const float* gradient;  // of the range, like the next three
  const float* square;
  float* r;
  float* v;
  float alpha, zeta;
  float most;                // v stays below, so that alpha v is finite
  int64_t offset, position;  // of the range in arena and field
  int64_t capacity;
  int64_t* indices;
  uint32_t* positions;
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
};

/// What waits, by arena index, and what becomes of it when it is sent.
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
  explicit Variance(Options options) : options_(options) {}

  Traits traits() const override { return {.squares = true, .sparse = true}; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}, {.name = "variance"}};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<power_words::Scratch>(spec, info.ratio);
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }
  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    return {.kind = Collective::all_gather,
            .bytes = power_words::capacity(spec, info.ratio),
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Outlet> outlets) override {
    const Stream& stream = context.stream;
    const auto scratch = lay_out<power_words::Scratch>(unit.scratch, unit.spec, info.ratio);
    const Waiting waiting{unit.state->tensors[0].data<float>(),
                          unit.state->tensors[1].data<float>(), options_.keep_rounding};
    power_words::begin(stream, scratch);
    for (size_t f = 0; f < unit.spec.fields.size(); ++f) {
      const Field& field = unit.spec.fields[f];
      if (unit.finite) {  // else nothing is sent, and no state changes
        const int64_t capacity = kept_count(info.ratio, field.numel);
        const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
        const int64_t start = random.below(0, static_cast<uint32_t>(field.numel));
        list(stream, unit, field, start, field.numel, capacity, scratch);
        list(stream, unit, field, 0, start, capacity, scratch);
        power_words::write_field(stream, scratch, unit.spec, capacity, waiting, outlets[0].data);
      }
      power_words::end_field(stream, scratch, unit.spec, f, outlets[0].data);
    }
    power_words::end(stream, scratch, unit.spec, outlets[0].used);
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int,
              std::span<const Payload> payloads) override {
    clear_fields(context.stream, unit.spec, unit.gradient);
    for (const Payload& payload : payloads)
      power_words::add(context.stream, unit.spec, info.ratio, payload, 1.0f, unit.gradient,
                       unit.scratch);
  }

 private:
  /// Accumulates the field's positions [from, to) and lists what passes, slice by slice.
  void list(const Stream& stream, const Unit& unit, const Field& field, int64_t from, int64_t to,
            int64_t capacity, const power_words::Scratch& scratch) const {
    const auto alpha = static_cast<float>(options_.alpha);
    int64_t position = 0;
    for (const Slice& slice : field.slices) {
      const int64_t begin = std::max(from, position);
      const int64_t end = std::min(to, position + slice.numel);
      const int64_t offset = slice.offset + begin - position;
      position += slice.numel;
      if (begin >= end) continue;
      parallel_select(
          stream, end - begin,
          Accumulate{unit.gradient.data<float>() + offset, unit.square.data<float>() + offset,
                     unit.state->tensors[0].data<float>() + offset,
                     unit.state->tensors[1].data<float>() + offset, alpha,
                     static_cast<float>(options_.zeta),
                     std::numeric_limits<float>::max() / (2.0f * alpha), offset, begin, capacity,
                     scratch.index, scratch.position},
          &scratch.state->listed, scratch.masks);
    }
  }

  Options options_;
};

const CompressorRegistration registration(
    "variance", "elements whose mean is unambiguous, as powers of two (Tsuzuku et al. 2018)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks its keys
      Options options;
      config.bind("compression.alpha", options.alpha,
                  "variance: an element travels if r^2 > alpha v; published 1, 1.5, 2");
      config.bind("compression.zeta", options.zeta, "variance: decay of v in a step of waiting");
      config.bind("compression.keep_rounding", options.keep_rounding,
                  "variance: what rounding to a power of two took stays in the residual");
      WISP_CHECK(1.0 <= options.alpha && options.alpha <= 1e6, config.where("compression.alpha"),
                 ": compression.alpha is ", options.alpha, ", expected 1 to 1e6");
      WISP_CHECK(0.0 < options.zeta && options.zeta <= 1.0, config.where("compression.zeta"),
                 ": compression.zeta is ", options.zeta, ", expected 0 < zeta <= 1");
      return std::make_unique<Variance>(options);
    });

}  // namespace
}  // namespace wisp
