#include "compression/sparse/select.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace wisp {
namespace select {
namespace {

constexpr int64_t kMinCapacity = 4096;  // fields up to here are listed whole
constexpr int64_t kMinSample = 256;

struct Begin {
  Progress* state;
  WISP_HD void operator()() const { *state = Progress{}; }
};

struct WantFromSample {
  Progress* state;
  int64_t sample, rank;
  WISP_HD void operator()() const {
    state->wanted = rank;
    state->count_list = sample;
  }
};

struct SampleDigit {
  const uint32_t* key;
  const Progress* state;
  int shift;
  WISP_HD int operator()(int64_t i) const {
    return digit_of(static_cast<uint64_t>(key[i]) << 32, state->bound, shift);
  }
};

struct CandidateDigit {
  const uint32_t* key;
  const uint32_t* position;
  const Progress* state;
  Order order;
  int shift;
  WISP_HD int operator()(int64_t i) const {
    return digit_of(order(key[i], position[i]), state->bound, shift);
  }
};

struct AddBins {
  const uint32_t* from;
  uint32_t* into;
  WISP_HD void operator()(int64_t i) const { into[i] += from[i]; }
};

constexpr int64_t kAll = 0x7fffffffffffffff;

WISP_HD inline uint64_t bound_of(uint32_t magnitude) {
  return static_cast<uint64_t>(magnitude) << 32;
}

/// The threshold that is given, at least what can be selected at all.
WISP_HD inline uint64_t given_bound(const Selection& selection) {
  const float threshold = selection.on_device ? *selection.on_device : selection.threshold;
  const uint32_t given = magnitude_bits(threshold);
  return bound_of(given < selection.least ? selection.least : given);
}

/// To what is given, if the sample's is not higher.
struct RaiseThreshold {
  Progress* state;
  Selection selection;
  WISP_HD void operator()() const {
    const uint64_t given = given_bound(selection);
    if (state->bound < given) state->bound = given;
  }
};

/// To what is given, if the sample's was higher and too high.
struct LowerThreshold {
  Progress* state;
  Selection selection;
  int64_t k;
  WISP_HD void operator()() const {
    const uint64_t given = given_bound(selection);
    const bool again = state->candidates < k && state->bound > given;
    state->count_field = again ? kAll : 0;
    if (!again) return;
    state->bound = given;
    state->candidates = 0;
  }
};

struct Clear {
  uint32_t* bins;
  WISP_HD void operator()(int64_t i) const { bins[i] = 0; }
};

/// A share of k below which the sample's threshold was too high.
WISP_HD inline bool too_few(int64_t candidates, int64_t k) {
  return static_cast<float>(candidates) < kAdaptation * static_cast<float>(k);
}

struct BeginAdaptation {
  Progress* state;
  int64_t k;
  uint32_t least;
  WISP_HD void operator()() const {
    const bool more = state->bound > bound_of(least);  // below the threshold
    state->count_field = more && too_few(state->candidates, k) ? kAll : 0;
  }
};

/// The threshold of the first step that lets enough pass, or of the last.
struct EndAdaptation {
  Progress* state;
  const uint32_t* bins;
  int64_t k;
  uint32_t least;
  WISP_HD void operator()() const {
    if (state->count_field == 0) return;
    float threshold = float_from_bits(static_cast<uint32_t>(state->bound >> 32));
    int64_t pass = state->candidates;
    for (int step = 1; step <= kAdaptations && too_few(pass, k); ++step) {
      threshold *= kAdaptation;
      pass += bins[step];
    }
    const uint32_t magnitude = float_bits(threshold);
    state->bound = bound_of(magnitude < least ? least : magnitude);
    state->candidates = 0;
  }
};

/// The list is good if it lost none and, where k are asked for exactly, holds as many, or all that
/// can be selected; else the whole field is looked at again.
struct Judge {
  Progress* state;
  int64_t k, capacity;
  bool exact;
  uint32_t least;
  WISP_HD void operator()() const {
    const bool all = state->bound <= bound_of(least);
    const bool enough = !exact || all || k <= state->candidates;
    const bool good = enough && state->candidates <= capacity;
    state->bound = 0;
    state->wanted = state->candidates < k && good ? state->candidates : k;
    state->pick_list = good ? state->candidates : 0;
    state->pick_field = good ? 0 : kAll;
    state->count_list = state->candidates == state->wanted ? 0 : state->pick_list;
    state->count_field = state->pick_field;
  }
};

/// Decides the digit at `shift`; ends the selection if all elements with that digit are wanted.
struct Narrow {
  Progress* state;
  const uint32_t* bins;
  int shift;
  WISP_HD void operator()() const {
    if (state->count_list == 0 && state->count_field == 0) return;
    int digit = kBins - 1;
    int64_t wanted = state->wanted;
    while (digit > 0 && bins[digit] < wanted) wanted -= bins[digit--];
    state->bound |= static_cast<uint64_t>(digit) << shift;
    state->wanted = wanted;
    if (wanted == bins[digit]) state->count_list = state->count_field = 0;
  }
};

struct PickCandidates {
  const uint32_t* key;
  const uint32_t* position;
  const Progress* state;
  Order order;
  uint32_t* positions;
  WISP_HD bool operator()(int64_t i) const { return order(key[i], position[i]) >= state->bound; }
  WISP_HD void emit(int64_t at, int64_t i) const { positions[at] = position[i]; }
};

struct TellCount {
  const Progress* state;
  int64_t* count;
  WISP_HD void operator()() const { *count = state->selected; }
};

}  // namespace

Extent::Extent(int64_t elements, int64_t kept, Selection::Kind kind)
    : numel(elements), k(kept), capacity(elements) {
  WISP_CHECK(0 < numel && numel <= std::numeric_limits<uint32_t>::max(), "top-k: a field has ",
             numel, " elements, expected 1 to 2^32 - 1");
  WISP_CHECK(0 < k && k <= numel, "top-k: k is ", k, " of ", numel, " elements");
  // The sample that costs least: its own size plus the candidates beyond k, which fall with its
  // root. Among `size` draws, those above the true threshold are about r = size · k / numel with
  // deviation sqrt(r); the rank taken lies 4 deviations above where k must be
  // met, the capacity 8 more.
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

Extent Extent::of_list(int64_t numel, int64_t k) {
  Extent extent(numel, k);
  extent.capacity = numel;
  extent.sample = extent.rank = 0;
  return extent;
}

int64_t numel_of(Slices slices) {
  int64_t numel = 0;
  for (const Slice& slice : slices) numel += slice.numel;
  return numel;
}

Scratch::Scratch(Cursor& cursor, const Extent& extent, Slices slices)
    : state(cursor.take<Progress>(1)),
      bins(cursor.take<uint32_t>(kBins)),
      slice_bins(cursor.take<uint32_t>(kBins)),
      key(cursor.take<uint32_t>(std::max(extent.capacity, extent.sample))),
      position(cursor.take<uint32_t>(extent.capacity)) {
  int64_t longest = extent.capacity;
  for (const Slice& slice : slices) longest = std::max(longest, slice.numel);
  masks = cursor.take<std::byte>(select_scratch_bytes(longest));
}

void begin(const Stream& stream, const Scratch& scratch) { run_once(stream, Begin{scratch.state}); }

void threshold_from_sample(const Stream& stream, const Scratch& scratch, const Extent& extent) {
  run_once(stream, WantFromSample{scratch.state, extent.sample, extent.rank});
  for (int shift = 64 - kDigitBits; shift >= 32; shift -= kDigitBits) {
    parallel_histogram_counted(stream, &scratch.state->count_list, extent.sample,
                               SampleDigit{scratch.key, scratch.state, shift}, scratch.bins, kBins);
    narrow(stream, scratch, shift);
  }
}

void raise_threshold(const Stream& stream, const Scratch& scratch, const Selection& selection) {
  run_once(stream, RaiseThreshold{scratch.state, selection});
}

void lower_threshold(const Stream& stream, const Scratch& scratch, const Extent& extent,
                     const Selection& selection) {
  run_once(stream, LowerThreshold{scratch.state, selection, extent.k});
}

void begin_adaptation(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      uint32_t least) {
  parallel_for(stream, kBins, Clear{scratch.bins});
  run_once(stream, BeginAdaptation{scratch.state, extent.k, least});
}

void end_adaptation(const Stream& stream, const Scratch& scratch, const Extent& extent,
                    uint32_t least) {
  run_once(stream, EndAdaptation{scratch.state, scratch.bins, extent.k, least});
}

void judge_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      const Selection& selection) {
  run_once(stream, Judge{scratch.state, extent.k, extent.capacity,
                         selection.kind == Selection::Kind::exact, selection.least});
}

void count_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      Order order, int shift) {
  parallel_histogram_counted(
      stream, &scratch.state->count_list, extent.capacity,
      CandidateDigit{scratch.key, scratch.position, scratch.state, order, shift}, scratch.bins,
      kBins);
}

void add_slice_bins(const Stream& stream, const Scratch& scratch) {
  parallel_for(stream, kBins, AddBins{scratch.slice_bins, scratch.bins});
}

void narrow(const Stream& stream, const Scratch& scratch, int shift) {
  run_once(stream, Narrow{scratch.state, scratch.bins, shift});
}

void pick_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                     Order order, uint32_t* positions) {
  parallel_select_counted(
      stream, &scratch.state->pick_list, extent.capacity,
      PickCandidates{scratch.key, scratch.position, scratch.state, order, positions},
      &scratch.state->selected, scratch.masks);
}

void tell_count(const Stream& stream, const Scratch& scratch, int64_t* count) {
  run_once(stream, TellCount{scratch.state, count});
}

}  // namespace select

int64_t kept_count(double ratio, int64_t numel) {
  const double product = ratio * static_cast<double>(numel);
  const auto k = static_cast<int64_t>(std::ceil(product * (1.0 - 1e-12)));
  return std::min(std::max(k, int64_t{1}), numel);
}

int64_t select_entries_bytes(Slices slices, int64_t k, Selection::Kind kind) {
  const int64_t end = slices.back().offset + slices.back().numel;
  WISP_CHECK(end <= std::numeric_limits<uint32_t>::max(), "top-k: a field ends at element ", end,
             " of the arena, expected at most 2^32 - 1");
  return layout_bytes<select::Scratch>(select::Extent(select::numel_of(slices), k, kind), slices);
}

}  // namespace wisp
