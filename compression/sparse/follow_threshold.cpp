#include "compression/sparse/follow_threshold.h"

#include "core/loops/parallel.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

constexpr int kRaises = 5;  // per step

struct Smallest {
  using Value = float;
  const float* value;
  WISP_HD float identity() const { return float_from_bits(0x7f7fffffu); }
  WISP_HD float map(int64_t i) const { return float_from_bits(magnitude_bits(value[i])); }
  WISP_HD float combine(float a, float b) const { return b < a ? b : a; }
};

struct Measure {
  struct Shared {};
  SparseList list;
  float* out;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const float smallest = team.reduce(range.count, Smallest{list.value + range.begin});
    team.once([&] { out[f] = range.count > 0 ? smallest : 0.0f; });
  }
};

/// A field for kernels.
struct FollowRow {
  int64_t first_item, field;
  int64_t k, most;
};

struct Raise {
  struct Shared {};
  const Range* range;
  const float* smallests;
  float* thresholds;
  float factor;
  RowTable<FollowRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const FollowRow& row = table.row[item];
    const int64_t count = range[row.field].count;
    const float smallest = smallests[row.field];
    team.once([&] {
      float& threshold = thresholds[row.field];
      if (threshold == 0.0f || count <= row.most) return;
      for (int raise = 0; raise < kRaises && threshold <= smallest; ++raise) threshold *= factor;
    });
  }
};

struct Set {
  const float* smallests;
  bool all;
  float* thresholds;
  WISP_HD void operator()(int64_t f) const {
    if (all || thresholds[f] == 0.0f) thresholds[f] = smallests[f];
  }
};

struct Follow {
  struct Shared {};
  const int64_t* counts;
  int64_t stride;
  float* thresholds;
  float factor;
  RowTable<FollowRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const FollowRow& row = table.row[item];
    const int64_t count = counts[stride * row.field];
    team.once([&] {
      float& threshold = thresholds[row.field];
      if (3 * count < 2 * row.k) {
        threshold /= factor;
      } else if (count > row.most) {
        threshold *= factor;
      }
    });
  }
};

template <class Kernel>
void over_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                     const Kernel& kernel) {
  parallel_rows(stream, kernel, 1, [&](const auto& put) {
    for (int64_t f = 0; f < std::ssize(spec.fields); ++f) {
      const Field& field = spec.fields[static_cast<size_t>(f)];
      put({0, f, kept_count(most.ratio, field.numel), most.of(field)}, 1);
    }
  });
}

}  // namespace

void measure_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const SparseList& list, float* out) {
  const auto fields = std::ssize(spec.fields);
  parallel_teams(stream, fields, Measure{list, out}, room.of(spec) / fields);
}

void raise_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                      const SparseList& list, const float* smallest, double factor,
                      float* thresholds) {
  over_thresholds(stream, spec, most,
                  Raise{list.range, smallest, thresholds, static_cast<float>(factor)});
}

void set_thresholds(const Stream& stream, const UnitSpec& spec, const float* smallest, bool all,
                    float* thresholds) {
  parallel_for(stream, std::ssize(spec.fields), Set{smallest, all, thresholds});
}

void follow_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                       const int64_t* count, int64_t stride, double factor, float* thresholds) {
  over_thresholds(stream, spec, most,
                  Follow{count, stride, thresholds, static_cast<float>(factor)});
}

}  // namespace wisp
