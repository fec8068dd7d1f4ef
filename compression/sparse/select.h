// Selection by magnitude, in one pass over a field's memory: a threshold is given or drawn from a
// sample, one fused pass applies the method's update and lists what passed, and a radix selection
// narrows the list to the k largest if more passed. Nothing is read back from the device; the
// result depends on the numbers and the key alone. Equal magnitudes at the k-th place are taken in
// cyclic order from a drawn position, so no part of the field is preferred. Zeros are never
// selected (Selection::least): of a field with fewer than k others, those are, without another look
// at it.
//   exact      the sample's threshold errs low, so that at least k pass: exactly k are selected, or
//              all that are not zero
//   sampled    the threshold is the sample's own quantile, times 0.8 (up to ten times) while fewer
//              than 0.8 k pass: 0.8 k to k are selected, or what ten steps reach
//   threshold  it is given: what passes is selected, the k largest of it if that is more; a
//              sample's threshold as of exact, if it is higher, lists fewer in the second case
// Source: Lin et al. 2018, section 3.1 (sampled threshold, hierarchical selection); bounds, factor
// and iterations are the authors' code's. Ours: the sample's size; more than k are always narrowed
// (their code cuts off by index up to 1.3 k); the ten steps are one histogram.
#pragma once

#include <span>

#include "compression/compressor.h"
#include "compression/cursor.h"
#include "core/parallel.h"
#include "core/random.h"

namespace wisp {

/// ceil(ratio · numel), at least 1 and at most numel. Rounding errors of the product do not count:
/// 0.001 of 1000 is 1.
int64_t kept_count(double ratio, int64_t numel);

/// What is selected from: the slices of a field, in their order.
using Slices = std::span<const Slice>;

/// The magnitude of a number as an integer that orders alike.
WISP_HD inline uint32_t magnitude_bits(float value) { return float_bits(value) & 0x7fffffffu; }

/// How the elements of a field that travel are chosen.
struct Selection {
  enum class Kind { exact, sampled, threshold };

  Kind kind = Kind::exact;
  float threshold = 0.0f;            // of magnitudes
  const float* on_device = nullptr;  // or where it lies in device memory
  uint32_t least = 1;  // magnitude_bits from which an element can be selected; 0: zeros too
};

namespace select {

constexpr int kDigitBits = 8;
constexpr int kBins = 1 << kDigitBits;
constexpr int64_t kCluster = 4;  // neighbours sampled together: one cache line serves them
constexpr int kAdaptations = 10;
constexpr float kAdaptation = 0.8f;  // also the share of k from which a sampled threshold is kept

int64_t numel_of(Slices slices);

/// How much of a field is sampled, listed and selected. Host arithmetic.
struct Extent {
  int64_t numel = 0;
  int64_t k = 0;
  int64_t capacity = 0;  // of the list of candidates
  int64_t sample = 0;    // elements; 0: no threshold, all are candidates
  int64_t rank = 0;      // in the sample: its rank-th largest magnitude is the threshold

  Extent(int64_t numel, int64_t k, Selection::Kind kind = Selection::Kind::exact);
  /// Of a list of at most `numel` entries, each a candidate.
  static Extent of_list(int64_t numel, int64_t k);
  /// All elements fit into the list.
  bool whole() const { return capacity == numel; }
};

/// Total order of a field's elements: by magnitude, then by cyclic distance from a drawn start.
struct Order {
  int64_t start = 0;
  int64_t numel = 0;
  WISP_HD uint64_t operator()(uint32_t key, int64_t position) const {
    const int64_t distance = position - start + (position < start ? numel : 0);
    return static_cast<uint64_t>(key) << 32 | (0xffffffffu - static_cast<uint64_t>(distance));
  }
};

/// Device words of a selection under way.
struct Progress {
  int64_t candidates;  // that passed the threshold, even beyond the list's capacity
  int64_t selected;
  // A radix selection: the elements above `bound` with its undecided digits zero are the wanted
  // ones.
  uint64_t bound;  // while elements are listed: the threshold, in its upper half, `least` or more
  int64_t wanted;
  // How many elements the loops that follow visit: of the list, or of each slice if the list
  // failed.
  int64_t count_list, count_field;  // in the radix selection, 0 once it is decided
  int64_t pick_list, pick_field;    // in the final selection
};

/// The digit of x at `shift` if the digits above it agree with the bound, else -1.
WISP_HD inline int digit_of(uint64_t x, uint64_t bound, int shift) {
  const bool agrees = (x >> shift >> kDigitBits) == (bound >> shift >> kDigitBits);
  return agrees ? static_cast<int>(x >> shift & (kBins - 1)) : -1;
}

/// The parts of one field's scratch.
struct Scratch {
  Progress* state;
  uint32_t* bins;
  uint32_t* slice_bins;
  uint32_t* key;       // of the sample; then arena indices of the candidates; then their keys
  uint32_t* position;  // of candidates
  std::byte* masks;    // of a compaction of the list or of a slice

  Scratch(Cursor& cursor, const Extent& extent, Slices slices);
};

// The steps that do not look at the field itself.
void begin(const Stream& stream, const Scratch& scratch);
void threshold_from_sample(const Stream& stream, const Scratch& scratch, const Extent& extent);
void raise_threshold(const Stream& stream, const Scratch& scratch, const Selection& selection);
void lower_threshold(const Stream& stream, const Scratch& scratch, const Extent& extent,
                     const Selection& selection);
void begin_adaptation(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      uint32_t least);
void end_adaptation(const Stream& stream, const Scratch& scratch, const Extent& extent,
                    uint32_t least);
void judge_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      const Selection& selection);
void count_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                      Order order, int shift);
void add_slice_bins(const Stream& stream, const Scratch& scratch);
void narrow(const Stream& stream, const Scratch& scratch, int shift);
void pick_candidates(const Stream& stream, const Scratch& scratch, const Extent& extent,
                     Order order, uint32_t* positions);
void tell_count(const Stream& stream, const Scratch& scratch, int64_t* count);

template <class Source>
struct SampleKeys {
  Source source;
  uint32_t* key;   // of the first sampled element here
  int64_t first;   // its position in the slice; may be before or behind the slice
  int64_t stride;  // between clusters
  int64_t offset, numel;
  WISP_HD void operator()(int64_t i) const {
    const int64_t at = first + i / kCluster * stride + i % kCluster;
    if (0 <= at && at < numel) key[i] = magnitude_bits(source.peek(offset + at));
  }
};

/// The fused pass: the method's update, and the comparison with the threshold.
template <class Source>
struct TakeAndList {
  Source source;
  const Progress* state;
  int64_t offset;    // arena index of the slice
  int64_t position;  // field position of the slice
  int64_t capacity;
  uint32_t* indices;  // into the arena
  uint32_t* positions;
  WISP_HD void prefetch(int64_t i) const { source.prefetch(offset + i); }
  WISP_HD bool operator()(int64_t i) const {
    return magnitude_bits(source.take(offset + i)) >= static_cast<uint32_t>(state->bound >> 32);
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    indices[at] = static_cast<uint32_t>(offset + i);
    positions[at] = static_cast<uint32_t>(position + i);
  }
};

/// How many adaptations of the threshold an element needs to pass; -1: it passes, or never will.
template <class Source>
struct AdaptationsNeeded {
  Source source;
  const Progress* state;
  uint32_t least;
  int64_t offset;
  WISP_HD int operator()(int64_t i) const {
    const uint32_t key = magnitude_bits(source.held(offset + i));
    float threshold = float_from_bits(static_cast<uint32_t>(state->bound >> 32));
    if (key >= float_bits(threshold) || key < least) return -1;
    for (int step = 1; step <= kAdaptations; ++step) {
      threshold *= kAdaptation;
      if (key >= float_bits(threshold)) return step;
    }
    return -1;
  }
};

/// The list once more, with a lower threshold and the update already made.
template <class Source>
struct ListAgain : TakeAndList<Source> {
  WISP_HD bool operator()(int64_t i) const {
    return magnitude_bits(this->source.held(this->offset + i)) >=
           static_cast<uint32_t>(this->state->bound >> 32);
  }
};

/// Where the candidates' arena indices are, their keys will be. A loop of its own, since its reads
/// are all over the field and only then overlap.
template <class Source>
struct ReadKeys {
  Source source;
  uint32_t* key;
  WISP_HD void operator()(int64_t i) const { key[i] = magnitude_bits(source.held(key[i])); }
};

template <class Source>
struct FieldDigit {
  Source source;
  const Progress* state;
  Order order;
  uint32_t least;
  int64_t offset, position;
  int shift;
  WISP_HD int operator()(int64_t i) const {
    const uint32_t key = magnitude_bits(source.held(offset + i));
    return key < least ? -1 : digit_of(order(key, position + i), state->bound, shift);
  }
};

template <class Source>
struct PickFromField {
  Source source;
  const Progress* state;
  Order order;
  uint32_t least;
  int64_t offset, position;
  uint32_t* positions;
  WISP_HD bool operator()(int64_t i) const {
    const uint32_t key = magnitude_bits(source.held(offset + i));
    return key >= least && order(key, position + i) >= state->bound;
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    positions[at] = static_cast<uint32_t>(position + i);
  }
};

/// The part of the sample that lies in this slice; the first cluster begins at field position
/// `first`.
template <class Source>
void sample_slice(const Stream& stream, const Scratch& scratch, const Extent& extent,
                  const Source& source, const Slice& slice, int64_t position, int64_t first) {
  const int64_t clusters = extent.sample / kCluster;
  const int64_t stride = extent.numel / clusters;
  const int64_t end = position + slice.numel;
  const int64_t from = position <= first ? 0 : (position - first) / stride;
  const int64_t to = end <= first ? 0 : std::min(clusters, (end - first - 1) / stride + 1);
  if (from >= to) return;
  parallel_for(
      stream, (to - from) * kCluster,
      SampleKeys<Source>{source, scratch.key + from * kCluster, first + from * stride - position,
                         stride, slice.offset, slice.numel});
}

}  // namespace select

/// Bytes of scratch that select_entries needs; 8-byte aligned.
int64_t select_entries_bytes(Slices slices, int64_t k, Selection::Kind kind);
inline int64_t select_topk_bytes(Slices slices, int64_t k) {
  return select_entries_bytes(slices, k, Selection::Kind::exact);
}

/// Calls source.take(i) once for each element of the field, and writes the field positions of what
/// is selected, at most `k` and by |source.held(i)|, to `positions`, ascending; `count`, a device
/// word, gets their number, less than k where fewer are not zero (null: nobody asks). `random`
/// draws the sample and the order of equal magnitudes. A Source has prefetch, peek, take and held,
/// as in code.h.
template <class Source>
void select_entries(const Stream& stream, Slices slices, const Source& source, int64_t k,
                    const Selection& selection, const Philox& random, uint32_t* positions,
                    int64_t* count, std::byte* memory) {
  using namespace select;
  const Extent extent(select::numel_of(slices), k, selection.kind);
  const auto scratch = lay_out<Scratch>(memory, extent, slices);
  Progress* state = scratch.state;
  const Order order{random.below(0, static_cast<uint32_t>(extent.numel)), extent.numel};
  const auto each_slice = [&](const auto& visit) {
    int64_t position = 0;
    for (const Slice& slice : slices) {
      visit(slice, position);
      position += slice.numel;
    }
  };
  const auto list_of = [&](const Slice& slice, int64_t position) {
    return TakeAndList<Source>{source,          state,       slice.offset,    position,
                               extent.capacity, scratch.key, scratch.position};
  };

  begin(stream, scratch);
  if (extent.sample > 0) {
    const int64_t stride = extent.numel / (extent.sample / kCluster);
    const int64_t first = random.below(1, static_cast<uint32_t>(stride - kCluster + 1));
    each_slice([&](const Slice& slice, int64_t position) {
      sample_slice(stream, scratch, extent, source, slice, position, first);
    });
    threshold_from_sample(stream, scratch, extent);
  }
  raise_threshold(stream, scratch, selection);
  each_slice([&](const Slice& slice, int64_t position) {
    parallel_select(stream, slice.numel, list_of(slice, position), &state->candidates,
                    scratch.masks);
  });
  if (extent.sample > 0 && selection.kind == Selection::Kind::sampled) {
    begin_adaptation(stream, scratch, extent, selection.least);
    each_slice([&](const Slice& slice, int64_t) {
      parallel_histogram_counted(
          stream, &state->count_field, slice.numel,
          AdaptationsNeeded<Source>{source, state, selection.least, slice.offset},
          scratch.slice_bins, kBins);
      add_slice_bins(stream, scratch);
    });
    end_adaptation(stream, scratch, extent, selection.least);
  }
  if (extent.sample > 0 && selection.kind == Selection::Kind::threshold)
    lower_threshold(stream, scratch, extent, selection);
  if (extent.sample > 0 && selection.kind != Selection::Kind::exact) {
    each_slice([&](const Slice& slice, int64_t position) {
      parallel_select_counted(stream, &state->count_field, slice.numel,
                              ListAgain<Source>{list_of(slice, position)}, &state->candidates,
                              scratch.masks);
    });
  }
  judge_candidates(stream, scratch, extent, selection);
  parallel_for_counted(stream, &state->pick_list, extent.capacity,
                       ReadKeys<Source>{source, scratch.key});
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    count_candidates(stream, scratch, extent, order, shift);
    if (!extent.whole()) {
      each_slice([&](const Slice& slice, int64_t position) {
        parallel_histogram_counted(stream, &state->count_field, slice.numel,
                                   FieldDigit<Source>{source, state, order, selection.least,
                                                      slice.offset, position, shift},
                                   scratch.slice_bins, kBins);
        add_slice_bins(stream, scratch);
      });
    }
    narrow(stream, scratch, shift);
  }
  pick_candidates(stream, scratch, extent, order, positions);
  if (!extent.whole()) {
    each_slice([&](const Slice& slice, int64_t position) {
      parallel_select_counted(stream, &state->pick_field, slice.numel,
                              PickFromField<Source>{source, state, order, selection.least,
                                                    slice.offset, position, positions},
                              &state->selected, scratch.masks);
    });
  }
  if (count) tell_count(stream, scratch, count);
}

/// The `k` largest, exactly, zeros too where the others are fewer.
template <class Source>
void select_topk(const Stream& stream, Slices slices, const Source& source, int64_t k,
                 const Philox& random, uint32_t* positions, std::byte* memory) {
  select_entries(stream, slices, source, k, {.least = 0}, random, positions, nullptr, memory);
}

}  // namespace wisp
