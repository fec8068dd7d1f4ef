#include "compression/sparse/select.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace select {
namespace {

/// Lowers the threshold to that of the first step at which enough pass, or to that of the last.
struct EndAdaptation {
  const FieldRow* fields;
  Progress* states;
  uint32_t least;
  WISP_HD void operator()(int64_t f) const {
    const FieldRow& field = fields[f];
    Progress& state = states[f];
    state.again = adapts(field, state, least);
    if (!state.again) return;
    float threshold = float_from_bits(static_cast<uint32_t>(state.bound >> 32));
    int64_t pass = state.candidates;
    for (int step = 1; step <= kAdaptations && too_few(pass, field.k); ++step) {
      threshold *= kAdaptation;
      pass += state.passing[step];
    }
    const uint32_t magnitude = float_bits(threshold);
    state.bound = bound_of(magnitude < least ? least : magnitude);
  }
};

/// Lowers the threshold to the given one, if the sample's was higher and too few elements passed.
struct LowerThreshold {
  const FieldRow* fields;
  Progress* states;
  Selection selection;
  WISP_HD void operator()(int64_t f) const {
    Progress& state = states[f];
    const uint64_t given = given_bound(selection, f);
    state.again = fields[f].sample > 0 && state.candidates < fields[f].k && state.bound > given;
    if (state.again) state.bound = given;
  }
};

}  // namespace

Extent::Extent(int64_t elements, int64_t kept, Selection::Kind kind)
    : numel(elements), k(kept), capacity(elements) {
  constexpr int64_t kMinCapacity = 4096;  // fields up to this size are listed whole
  constexpr int64_t kMinSample = 256;
  WISP_CHECK(0 < numel && numel <= std::numeric_limits<uint32_t>::max(), "top-k: a field has ",
             numel, " elements, expected 1 to 2^32 - 1");
  WISP_CHECK(0 < k && k <= numel, "top-k: k is ", k, " of ", numel, " elements");
  // Chooses the sample of least cost: its own size plus the candidates beyond k, which fall with
  // the root of its size. Among `size` draws, about r = size · k / numel exceed the true threshold,
  // with deviation sqrt(r). The rank lies 4 deviations above r where k must be met; the capacity
  // has 8 more.
  const auto n = static_cast<double>(numel);
  const double wanted = 4.0 * std::cbrt(4.0 * n * static_cast<double>(k));
  const auto size =
      std::min(std::max(static_cast<int64_t>(wanted), kMinSample), numel / 8) / kCluster * kCluster;
  if (size == 0) return;
  const double hits = static_cast<double>(size) * static_cast<double>(k) / n;
  const double safe =
      kind == Selection::Kind::sampled ? std::ceil(hits) : hits + 4.0 * std::sqrt(hits) + 4.0;
  const double most = safe + 8.0 * std::sqrt(safe) + 8.0;
  const auto listed =
      std::max(static_cast<int64_t>(std::ceil(n * most / static_cast<double>(size))), kMinCapacity);
  if (listed >= numel) return;
  capacity = listed;
  sample = size;
  rank = static_cast<int64_t>(std::ceil(safe));
}

int64_t numel_of(Slices slices) {
  int64_t numel = 0;
  for (const Slice& slice : slices) numel += slice.numel;
  return numel;
}

void Sizes::add(Slices of_field, const Extent& extent) {
  const int64_t end = of_field.back().offset + of_field.back().numel;
  WISP_CHECK(end <= std::numeric_limits<uint32_t>::max(), "top-k: a field ends at element ", end,
             " of the arena, expected at most 2^32 - 1");
  ++fields;
  slices += std::ssize(of_field);
  for (const Slice& slice : of_field) {
    chunks += SelectRange::chunks(slice.numel);
    words += SelectRange::words(slice.numel);
  }
  entries += std::max(extent.capacity, extent.sample);
  tiles += tiles_of(extent.k);
}

Scratch::Scratch(Cursor& cursor, const Sizes& sizes)
    : row(cursor.take<FieldRow>(sizes.fields)),
      slice(cursor.take<SliceRow>(sizes.slices)),
      source(cursor.take<std::byte>(kMostSource * sizes.fields)),
      state(cursor.take<Progress>(sizes.fields)),
      masks(cursor.take<uint64_t>(sizes.words)),
      selected(cursor.take<int64_t>(sizes.chunks)),
      word(cursor.take<uint32_t>(sizes.entries)),
      position(cursor.take<uint32_t>(sizes.entries)) {}

void end_adaptation(const Stream& stream, const FieldRow* fields, int64_t count, Progress* state,
                    uint32_t least) {
  parallel_for(stream, count, EndAdaptation{fields, state, least});
}

void lower_threshold(const Stream& stream, const FieldRow* fields, int64_t count, Progress* state,
                     const Selection& selection) {
  parallel_for(stream, count, LowerThreshold{fields, state, selection});
}

}  // namespace select

int64_t kept_count(double ratio, int64_t numel) {
  const double product = ratio * static_cast<double>(numel);
  const auto k = static_cast<int64_t>(std::ceil(product * (1.0 - 1e-12)));
  return std::min(std::max(k, int64_t{1}), numel);
}

}  // namespace wisp
