// The sample of each field from which a selection takes its threshold (select.h). Used by the comm
// thread.
#pragma once

#include "compression/sparse/select_fields.h"
#include "core/loops/parallel_teams.h"

namespace wisp::select {

constexpr uint32_t kElsewhere = 0xffffffffu;  // no magnitude_bits

/// The sampled elements whose clusters reach into a slice.
WISP_HD inline Section sampled_of(const FieldRow& field, const SliceRow& slice) {
  const int64_t end = slice.position + slice.numel;
  const int64_t from =
      slice.position <= field.first ? 0 : (slice.position - field.first) / field.stride;
  const int64_t to = end <= field.first ? 0 : (end - field.first - 1) / field.stride + 1;
  return {from * kCluster, to * kCluster};
}

/// Sampled elements that may lie in a slice.
template <class Source>
struct SampleOfSlice {
  Source source;
  int64_t first, stride;  // position of the field's first cluster in the slice, may be before it
  int64_t offset, numel;
  int64_t from;  // the first of these elements
  /// The magnitude of the i-th of them; kElsewhere if that lies in another slice.
  WISP_HD uint32_t operator()(int64_t i) const {
    const auto sampled = static_cast<uint64_t>(from + i);  // unsigned: divided by shifts
    const int64_t at = first + static_cast<int64_t>(sampled / kCluster) * stride +
                       static_cast<int64_t>(sampled % kCluster);
    return 0 <= at && at < numel ? magnitude_bits(source.peek(offset + at)) : kElsewhere;
  }
};

/// Reads the magnitudes of a part of a field's sample.
template <class Source>
struct ReadSample {
  struct Shared {};
  Fields<Source> fields;
  WISP_HD void operator()(const Team& team, int64_t item, const Shared&) const {
    const int64_t f = item / fields.samplers;
    const Section part = part_of(fields.row[f].sample, item % fields.samplers, fields.samplers);
    if (part.size() == 0) return;
    const FieldRow field = fields.row[f];
    fields.each_slice(field, [&](const SliceRow& slice) {
      const Section own = part.within(sampled_of(field, slice));
      uint32_t* magnitude = fields.sampled(field) + own.from;
      const SampleOfSlice<Source> sample{fields.source[f], field.first - slice.position,
                                         field.stride,     slice.offset,
                                         slice.numel,      own.from};
      team.update(own.size(), sample, [&](int64_t i, uint32_t found) {
        if (found != kElsewhere) magnitude[i] = found;
      });
    });
  }
};

}  // namespace wisp::select
