// Selection by magnitude, in one pass over a field's memory. A threshold is given or comes from a
// sample. One fused pass applies the method's update and lists the elements that pass. If more than
// k passed, a radix selection narrows the list to the k largest. One launch processes all fields of
// a unit; outside the fused pass, each field has its own team, which others help to read on a
// device. Nothing is read back from the device. The result depends on the numbers and the key
// alone. Equal magnitudes at the k-th place are taken in cyclic order from a drawn position, so no
// part of the field is preferred. Zeros are never selected (Selection::least): a field with fewer
// than k others selects those, without a second pass.
//   exact      the sample's threshold errs low, so that at least k pass: selects exactly k, or all
//              that are not zero
//   sampled    the threshold is the sample's quantile, times 0.8 (up to ten times) while fewer than
//              0.8 k pass: selects 0.8 k to k, or fewer after ten steps
//   threshold  the threshold is given: selects all that pass, or the k largest of them; a higher
//              threshold from a sample, as for exact, shortens the list in the second case
// Used by the comm thread. Source: Lin et al. 2018, section 3.1 (sampled threshold, hierarchical
// selection); bounds, factor and iterations are from the authors' code. Ours: the sample's size;
// more than k are always narrowed (their code cuts off by index up to 1.3 k); the ten steps are one
// histogram.
#pragma once

#include "compression/code.h"
#include "compression/sparse/select_sample.h"

namespace wisp {
namespace select {

constexpr int kDigitBits = 8;
constexpr int kBins = 1 << kDigitBits;
constexpr float kAdaptation = 0.8f;  // also the share of k at which a sampled threshold is kept

/// The digit of x at `shift`; -1 if the digits above it differ from the bound's.
WISP_HD inline int digit_of(uint64_t x, uint64_t bound, int shift) {
  const bool agrees = (x >> shift >> kDigitBits) == (bound >> shift >> kDigitBits);
  return agrees ? static_cast<int>(x >> shift & (kBins - 1)) : -1;
}

/// The memory with which a team counts digits.
struct Digits {
  uint32_t bins[kBins];
  int digit;
  int64_t wanted;
};

/// The largest bound that `wanted` numbers reach, found digit by digit down to bit `lowest`. Digits
/// that make no difference are zero; the bound is zero if there are fewer numbers. count(digit)
/// calls digit(x) for each number x and counts it in digits.bins unless it is negative.
template <class Count>
WISP_HD uint64_t bound_of_largest(const Team& team, Digits& digits, int64_t wanted, int lowest,
                                  const Count& count) {
  uint64_t bound = 0;
  for (int shift = 64 - kDigitBits; shift >= lowest; shift -= kDigitBits) {
    team.each(kBins, [&](int64_t b) { digits.bins[b] = 0; });
    count([=](uint64_t x) { return digit_of(x, bound, shift); });
    team.scan(
        kBins, [&](int64_t i) { return int64_t{digits.bins[kBins - 1 - i]}; },
        [&](int64_t i, int64_t above) {
          const int64_t here = digits.bins[kBins - 1 - i];
          if (above >= wanted || (above + here < wanted && i < kBins - 1)) return;
          digits.digit = static_cast<int>(kBins - 1 - i);
          digits.wanted = wanted - above;
        });
    bound |= static_cast<uint64_t>(digits.digit) << shift;
    wanted = digits.wanted;
    if (wanted == digits.bins[digits.digit]) break;
  }
  return bound;
}

WISP_HD inline uint64_t bound_of(uint32_t magnitude) {
  return static_cast<uint64_t>(magnitude) << 32;
}

/// The given threshold, at least the least that can be selected.
WISP_HD inline uint64_t given_bound(const Selection& selection, int64_t field) {
  const float threshold = selection.on_device ? selection.on_device[field] : selection.threshold;
  const uint32_t given = magnitude_bits(threshold);
  return bound_of(given < selection.least ? selection.least : given);
}

/// Finds a field's threshold: from its sample, or the given one if that is higher.
template <class Source>
struct FindThreshold {
  using Shared = Digits;
  Fields<Source> fields;
  Selection selection;
  WISP_HD void operator()(const Team& team, int64_t f, Digits& digits) const {
    const FieldRow field = fields.row[f];
    const uint32_t* sampled = fields.sampled(field);
    uint64_t bound = 0;
    if (field.sample > 0) {
      if (fields.samplers == 1) ReadSample<Source>{fields}(team, f, {});
      bound = bound_of_largest(team, digits, field.rank, 32, [&](const auto& digit) {
        team.histogram(field.sample, digits.bins,
                       [&](int64_t i) { return digit(bound_of(sampled[i])); });
      });
    }
    const uint64_t given = given_bound(selection, f);
    if (bound < given) bound = given;
    team.once([&] { fields.state[f] = Progress{.bound = bound}; });
  }
};

/// The fused pass: the method's update, and the comparison with the threshold.
template <class Source>
struct TakeAndList {
  Source source;
  uint32_t threshold;  // as magnitude_bits
  int64_t offset;      // arena index of the slice
  int64_t position;    // field position of the slice
  int64_t capacity;
  uint32_t* indices;  // arena indices
  uint32_t* positions;
  int64_t* candidates;
  WISP_HD void prefetch(int64_t i) const { source.prefetch(offset + i); }
  WISP_HD bool operator()(int64_t i) const {
    return magnitude_bits(source.take(offset + i)) >= threshold;
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    indices[at] = static_cast<uint32_t>(offset + i);
    positions[at] = static_cast<uint32_t>(position + i);
  }
  WISP_HD int64_t* count() const { return candidates; }
};

/// A second pass for the list, with a lower threshold, after the update was made.
template <class Source>
struct ListAgain : TakeAndList<Source> {
  bool again;
  WISP_HD bool operator()(int64_t i) const {
    return magnitude_bits(this->source.held(this->offset + i)) >= this->threshold;
  }
  WISP_HD bool off() const { return !again; }
};

/// The pass over each slice.
template <class Source, bool kAgain>
struct ListSlices {
  Fields<Source> fields;
  WISP_HD auto operator()(int64_t s) const {
    const SliceRow& slice = fields.slices.row[s];
    const FieldRow& field = fields.row[slice.field];
    Progress* state = fields.state + slice.field;
    const TakeAndList<Source> first{fields.source[slice.field],
                                    static_cast<uint32_t>(state->bound >> 32),
                                    slice.offset,
                                    slice.position,
                                    field.capacity,
                                    fields.index(field),
                                    fields.position(field),
                                    &state->candidates};
    if constexpr (kAgain) {
      return ListAgain<Source>{first, state->again != 0};
    } else {
      return first;
    }
  }
};

/// Whether so few elements passed that the sample's threshold was too high.
WISP_HD inline bool too_few(int64_t candidates, int64_t k) {
  return static_cast<float>(candidates) < kAdaptation * static_cast<float>(k);
}

/// Whether a field's threshold is adapted: it came from the sample, and numbers lie below it.
WISP_HD inline bool adapts(const FieldRow& field, const Progress& state, uint32_t least) {
  return field.sample > 0 && state.bound > bound_of(least) && too_few(state.candidates, field.k);
}

/// Counts, for each element of a chunk, how many adaptations of the threshold it needs to pass.
template <class Source>
struct CountPassing {
  struct Shared {
    uint32_t bins[kAdaptations + 1];
  };
  Fields<Source> fields;
  uint32_t least;
  WISP_HD void operator()(const Team& team, int64_t chunk, Shared& shared) const {
    const SliceRow& slice = fields.slices.row[fields.slices.of(chunk)];
    Progress& state = fields.state[slice.field];
    if (!adapts(fields.row[slice.field], state, least)) return;
    const Source source = fields.source[slice.field];
    const int64_t begin = slice.begin_of(chunk);
    const float highest = float_from_bits(static_cast<uint32_t>(state.bound >> 32));
    team.each(kAdaptations + 1, [&](int64_t b) { shared.bins[b] = 0; });
    team.histogram(slice.end_of(chunk) - begin, shared.bins, [&](int64_t i) {
      return needed(magnitude_bits(source.held(slice.offset + begin + i)), highest);
    });
    team.each(kAdaptations + 1,
              [&](int64_t b) { add_in_common(state.passing + b, shared.bins[b]); });
  }

 private:
  /// -1 if it passes already, or never will.
  WISP_HD int needed(uint32_t magnitude, float threshold) const {
    if (magnitude >= float_bits(threshold) || magnitude < least) return -1;
    for (int step = 1; step <= kAdaptations; ++step) {
      threshold *= kAdaptation;
      if (magnitude >= float_bits(threshold)) return step;
    }
    return -1;
  }
};

/// Reads the magnitudes of a part of a field's list, if more than k are listed. A phase of its own:
/// its reads are spread over the field, and overlap only this way.
template <class Source>
struct ReadMagnitudes {
  struct Shared {};
  Fields<Source> fields;
  WISP_HD void operator()(const Team& team, int64_t item, const Shared&) const {
    const int64_t f = item / fields.readers;
    const FieldRow& field = fields.row[f];
    const int64_t listed = fields.state[f].candidates;
    if (listed <= field.k || field.capacity < listed) return;
    const Section part = part_of(listed, item % fields.readers, fields.readers);
    const Source& source = fields.source[f];
    const uint32_t* index = fields.index(field) + part.from;
    uint32_t* magnitude = fields.magnitude(field) + part.from;
    team.fill(part.size(), magnitude,
              [&](int64_t i) { return magnitude_bits(source.held(index[i])); });
  }
};

/// Chooses the k largest entries of the list or, if the list is not good, of the field.
template <class Source>
struct Choose {
  using Shared = Digits;
  Fields<Source> fields;
  bool exact;
  uint32_t least;
  uint32_t* positions;
  Range* range;  // indexed by field; or null

  WISP_HD void operator()(const Team& team, int64_t f, Digits& digits) const {
    const FieldRow field = fields.row[f];
    const int64_t listed = fields.state[f].candidates;
    // The list is good if no entry was lost and, in exact selection, it holds k entries or all that
    // can be selected.
    const bool all = fields.state[f].bound <= bound_of(least);
    const bool good = listed <= field.capacity && (!exact || all || field.k <= listed);
    const int64_t count = good ? from_list(team, f, listed, digits)
                               : from_field(team, field, fields.source[f], digits);
    if (range) team.once([&] { range[f] = {field.begin, count}; });
  }

 private:
  WISP_HD int64_t from_list(const Team& team, int64_t f, int64_t listed, Digits& digits) const {
    const FieldRow field = fields.row[f];
    const uint32_t* magnitude = fields.magnitude(field);
    const uint32_t* position = fields.position(field);
    uint32_t* to = positions + field.begin;
    if (listed <= field.k) {
      team.fill(listed, to, [&](int64_t i) { return position[i]; });
      return listed;
    }
    if (fields.readers == 1) ReadMagnitudes<Source>{fields}(team, f, {});
    const Order order = field.order();
    const uint64_t bound = bound_of_largest(team, digits, field.k, 0, [&](const auto& digit) {
      team.histogram(listed, digits.bins,
                     [&](int64_t i) { return digit(order(magnitude[i], position[i])); });
    });
    return team.select(
        listed, [&](int64_t i) { return order(magnitude[i], position[i]) >= bound; },
        [&](int64_t at, int64_t i) { to[at] = position[i]; });
  }

  WISP_HD int64_t from_field(const Team& team, const FieldRow& field, const Source& source,
                             Digits& digits) const {
    const Order order = field.order();
    const uint64_t bound = bound_of_largest(team, digits, field.k, 0, [&](const auto& digit) {
      fields.each_slice(field, [&](const SliceRow& slice) {
        team.histogram(slice.numel, digits.bins, [&](int64_t i) {
          const uint32_t magnitude = magnitude_bits(source.held(slice.offset + i));
          return magnitude < least ? -1 : digit(order(magnitude, slice.position + i));
        });
      });
    });
    int64_t count = 0;
    fields.each_slice(field, [&](const SliceRow& slice) {
      uint32_t* to = positions + field.begin + count;
      count += team.select(
          slice.numel,
          [&](int64_t i) {
            const uint32_t magnitude = magnitude_bits(source.held(slice.offset + i));
            return magnitude >= least && order(magnitude, slice.position + i) >= bound;
          },
          [&](int64_t at, int64_t i) { to[at] = static_cast<uint32_t>(slice.position + i); });
    });
    return count;
  }
};

/// Steps between the first list and the second, which do not read the fields themselves.
void end_adaptation(const Stream& stream, const FieldRow* fields, int64_t count, Progress* state,
                    uint32_t least);
void lower_threshold(const Stream& stream, const FieldRow* fields, int64_t count, Progress* state,
                     const Selection& selection);

template <class Source>
void list_again(const Stream& stream, const Fields<Source>& fields, const Selection& selection) {
  if (selection.kind == Selection::Kind::sampled) {
    parallel_teams(stream, fields.slices.chunks, CountPassing<Source>{fields, selection.least},
                   parallel::kSelectChunk);
    end_adaptation(stream, fields.row, fields.count, fields.state, selection.least);
  } else {
    lower_threshold(stream, fields.row, fields.count, fields.state, selection);
  }
  parallel_select_ranges(stream, fields.slices, ListSlices<Source, true>{fields});
}

}  // namespace select

/// Calls source.take(i) once for each element of the fields, and selects at most k of each field by
/// |source.held(i)|. Writes their field positions to `positions`, ascending; each field has room
/// for its k, one field behind the other. range[f] gets the number, less than k if fewer are not
/// zero; `range` may be null.
template <class Source>
void select_entries(const Stream& stream, const select::Fields<Source>& fields,
                    const Selection& selection, uint32_t* positions, Range* range) {
  using namespace select;
  const int64_t entries = fields.entries / fields.count;
  if (fields.samplers > 1) {
    parallel_teams(stream, fields.count * fields.samplers, ReadSample<Source>{fields},
                   entries / fields.samplers);
  }
  parallel_teams(stream, fields.count, FindThreshold<Source>{fields, selection}, entries);
  parallel_select_ranges(stream, fields.slices, ListSlices<Source, false>{fields});
  const bool exact = selection.kind == Selection::Kind::exact;
  if (fields.samplers > 0 && !exact) list_again(stream, fields, selection);
  if (fields.readers > 1) {
    parallel_teams(stream, fields.count * fields.readers, ReadMagnitudes<Source>{fields},
                   entries / fields.readers);
  }
  parallel_teams(stream, fields.count,
                 Choose<Source>{fields, exact, selection.least, positions, range}, entries);
}

/// Selects the k largest of each array, zeros too, and writes their positions as select_entries()
/// does. The arrays lie one behind the other in `numbers`; array_of(f) describes number f.
template <class ArrayOf>
void select_of_arrays(const Stream& stream, int64_t count, const ArrayOf& array_of,
                      const float* numbers, uint32_t* positions, std::byte* scratch) {
  Slice all{};         // of the array passed last
  int64_t before = 0;  // numbers before it
  const auto from = [&](int64_t f) {
    const SelectArray array = array_of(f);
    before = f == 0 ? 0 : before + all.numel;
    all.numel = array.numel;
    return SelectFrom<Source>{{&all, 1}, {.gradient = numbers + before}, array.k, array.random};
  };
  const auto fields = select::write_fields(stream, count, from, Selection::Kind::exact, scratch);
  select_entries(stream, fields, {.least = 0}, positions, nullptr);
}
/// Bytes of scratch for select_of_arrays().
template <class ArrayOf>
int64_t select_of_arrays_bytes(int64_t count, const ArrayOf& array_of) {
  select::Sizes sizes;
  for (int64_t f = 0; f < count; ++f) {
    const SelectArray array = array_of(f);
    const Slice all{0, array.numel};
    sizes.add({&all, 1}, select::Extent(array.numel, array.k));
  }
  return layout_bytes<select::Scratch>(sizes);
}

}  // namespace wisp
