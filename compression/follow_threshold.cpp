#include "compression/follow_threshold.h"

namespace wisp {
namespace {

constexpr float kScale = 1.05f;

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

struct Mean {
  const float* sum;
  float share;
  float* mean;
  WISP_HD void operator()(int64_t f) const { mean[f] = share * sum[f]; }
};

struct Follow {
  const int64_t* count;
  const float* measured;
  int64_t k;
  bool due;
  float* threshold;
  WISP_HD void operator()() const {
    const int64_t most = 5 * k / 4;
    if (measured && (due || *threshold == 0.0f)) {
      *threshold = *measured;
    } else if (*count >= most && *count > k) {
      *threshold *= kScale;
    } else if (3 * *count < 2 * k) {
      *threshold /= kScale;
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

void adopt_thresholds(const Stream& stream, const UnitSpec& spec, const float* sum, int workers,
                      float* thresholds) {
  parallel_for(stream, static_cast<int64_t>(spec.fields.size()),
               Mean{sum, 1.0f / static_cast<float>(workers), thresholds});
}

void follow_thresholds(const Stream& stream, const UnitSpec& spec, double ratio,
                       const int64_t* count, int64_t stride, const float* measured, bool due,
                       float* thresholds) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const auto field = static_cast<int64_t>(f);
    run_once(stream, Follow{count + stride * field, measured ? measured + f : nullptr,
                            kept_count(ratio, spec.fields[f].numel), due, thresholds + f});
  }
}

}  // namespace wisp
