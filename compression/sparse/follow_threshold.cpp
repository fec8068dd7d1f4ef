#include "compression/sparse/follow_threshold.h"

namespace wisp {
namespace {

constexpr int kRaises = 5;  // within a step

struct Smallest {
  using Value = float;
  SparseList list;
  const Range* range;
  WISP_HD float identity() const { return float_from_bits(0x7f7fffffu); }
  WISP_HD float map(int64_t i) const {
    return i < range->count ? float_from_bits(magnitude_bits(list.value[range->begin + i]))
                            : identity();
  }
  WISP_HD float combine(float a, float b) const { return b < a ? b : a; }
};

struct Measured {
  const Range* range;
  const float* smallest;
  float* out;
  WISP_HD void operator()() const { *out = range->count > 0 ? *smallest : 0.0f; }
};

struct Raise {
  const int64_t* count;
  const float* smallest;
  int64_t k, room;
  bool due;
  float factor;
  float* threshold;
  WISP_HD void operator()() const {
    if (due || *threshold == 0.0f) {
      *threshold = *smallest;
    } else if (*count >= room && *count > k) {
      for (int raise = 0; raise < kRaises && *threshold <= *smallest; ++raise) *threshold *= factor;
    }
  }
};

struct Follow {
  const int64_t* count;
  int64_t k, most;
  float factor;
  float* threshold;
  WISP_HD void operator()() const {
    if (3 * *count < 2 * k) {
      *threshold /= factor;
    } else if (*count > most) {
      *threshold *= factor;
    }
  }
};

}  // namespace

void measure_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const SparseList& list, float* out, float* scratch) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Range* range = list.range + f;
    parallel_reduce(stream, room.of(spec.fields[f]), Smallest{list, range}, scratch + f);
    run_once(stream, Measured{range, scratch + f, out + f});
  }
}

void raise_thresholds(const Stream& stream, const UnitSpec& spec, const Room& room,
                      const SparseList& list, const float* smallest, bool due, double factor,
                      float* thresholds) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    run_once(stream, Raise{&list.range[f].count, smallest + f, kept_count(room.ratio, field.numel),
                           room.of(field), due, static_cast<float>(factor), thresholds + f});
  }
}

void follow_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                       const int64_t* count, int64_t stride, double factor, float* thresholds) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    run_once(stream,
             Follow{count + stride * static_cast<int64_t>(f), kept_count(most.ratio, field.numel),
                    most.of(field), static_cast<float>(factor), thresholds + f});
  }
}

}  // namespace wisp
