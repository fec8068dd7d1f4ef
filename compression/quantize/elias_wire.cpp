#include "compression/quantize/elias_wire.h"

#include <algorithm>

#include "compression/quantize/elias.h"
#include "compression/slices.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

/// A call encodes a chunk into a slot of its own.
struct EncodeChunk {
  Source source;
  Rounding rounding;
  const Grid* field;  // null: chunks have scales of their own
  Norm norm;
  int levels;
  int64_t run;  // elements of a chunk
  int64_t offset, position, numel;
  float* scales;
  std::byte* slots;
  int64_t slot_bytes;
  uint32_t* bytes;
  WISP_HD void operator()(int64_t c) const {
    group::by_kind(source, [&](const Source& kind) { encode(kind, c); });
  }
  WISP_HD void encode(const Source& kind, int64_t c) const {
    const int64_t begin = c * run;
    const int64_t size = numel - begin < run ? numel - begin : run;
    const Grid grid = field ? *field
                            : levels::sent_grid(levels::scale_of(kind, offset + begin, size, norm),
                                                levels, scales + c);
    BitWriter bits(slots + c * slot_bytes);
    int64_t next = begin;  // the element behind the last that was written
    for (int64_t i = begin; i < begin + size; i += group::kSize) {
      int32_t level[group::kSize];
      levels::take(kind, offset + i, position + i, group::size_at(i, begin + size), grid, rounding,
                   [&](int64_t j, int32_t here) { level[j] = here; });
      for (int64_t j = 0; j < group::kSize; ++j) {
        if (level[j] == 0) continue;
        const OmegaCode gap = omega_code(static_cast<uint32_t>(i + j + 1 - next));
        const OmegaCode magnitude =
            omega_code(static_cast<uint32_t>(level[j] < 0 ? -level[j] : level[j]));
        bits.put(gap.bits << 1 | (level[j] < 0 ? 1u : 0u), gap.length + 1);
        bits.put(magnitude.bits, magnitude.length);
        next = i + j + 1;
      }
    }
    bits.finish();
    bytes[c] = static_cast<uint32_t>(bits.end() - (slots + c * slot_bytes));
  }
};

/// From bytes of chunks to their ends.
struct Ends {
  uint32_t* end;
  int64_t chunks, before;
  int64_t* used;
  WISP_HD void operator()() const {
    uint32_t total = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      total += end[c];
      end[c] = total;
    }
    *used = before + 4 * chunks + total;
  }
};

struct CopyChunk {
  const std::byte* slots;
  int64_t slot_bytes;
  const uint32_t* end;
  std::byte* out;
  WISP_HD void operator()(int64_t c) const {
    const uint32_t begin = c > 0 ? end[c - 1] : 0;
    for (uint32_t b = begin; b < end[c]; ++b) out[b] = slots[c * slot_bytes + (b - begin)];
  }
};

/// A call decodes a chunk.
struct DecodeChunk {
  const uint32_t* end;  // of all chunks
  int64_t all, first;   // chunks; that of the slice
  int64_t before;       // bytes of the payload
  const std::byte* in;
  int64_t bytes;
  const float* scales;
  int64_t stride;  // from chunk to chunk, of scales
  int levels;
  int64_t run, numel;
  float weight;
  bool add;
  float* into;
  int64_t field;
  Complaints complaints;
  WISP_HD void operator()(int64_t c) const {
    const int64_t at = c * run;
    const int64_t size = numel - at < run ? numel - at : run;
    if (!add) {
      for (int64_t i = 0; i < size; ++i) into[at + i] = 0.0f;
    }
    const int64_t from = first + c > 0 ? end[first + c - 1] : 0;
    const int64_t to = end[first + c];
    if (first + c == all - 1 && to != bytes)
      complaints.add(Wrong::end, field, before + 4 * all + to);
    if (from > to || to > bytes) return complaints.add(Wrong::code, field, first + c);
    const float step = Grid::of(static_cast<double>(scales[c * stride]), levels).step;
    BitReader bits(in + from, in + to);
    int64_t next = 0;
    while (!bits.at_padding()) {
      const uint32_t gap = bits.omega();
      const bool negative = bits.take(1) == 1;
      const uint32_t magnitude = bits.omega();
      next += gap;
      if (bits.left() < 0 || gap == 0 || magnitude == 0 || next > size ||
          magnitude > static_cast<uint32_t>(levels))
        return complaints.add(Wrong::code, field, first + c);
      const float value = static_cast<float>(magnitude) * step;
      into[at + next - 1] += weight * (negative ? -value : value);
    }
  }
};

}  // namespace

int64_t EliasWire::chunks(const UnitSpec& spec) const {
  int64_t chunks = 0;
  each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
    chunks += (slice.numel + run() - 1) / run();
  });
  return chunks;
}

int64_t EliasWire::chunk_bytes(int64_t numel) const {
  const int64_t s = levels.levels;
  int64_t bits = numel * (2 + omega_code(static_cast<uint32_t>(s)).length);
  if (levels.norm == Norm::euclidean) bits = std::min(bits, 3 * numel + 2 * s * s);
  return (bits + 7) / 8;
}

int64_t EliasWire::capacity(const UnitSpec& spec) const {
  int64_t bytes = 0;
  each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
    bytes += slice.numel / run() * chunk_bytes(run()) + chunk_bytes(slice.numel % run());
  });
  WISP_CHECK(bytes <= UINT32_MAX, "elias wire: a unit of ", spec.numel,
             " elements may need more than 4 GiB; use smaller buckets");
  return 4 * chunks(spec) + bytes;
}

int64_t EliasWire::scratch_bytes(const UnitSpec& spec) const {
  return chunks(spec) * std::max<int64_t>(1, chunk_bytes(run()));
}

void EliasWire::encode(const Stream& stream, const Source& source, const UnitSpec& spec,
                       const StepInfo& info, const Grid* grids, float* scales, std::byte* out,
                       int64_t before, int64_t* used, std::byte* scratch) const {
  auto* end = reinterpret_cast<uint32_t*>(out);
  int64_t first = 0;
  each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
    const int64_t here = (slice.numel + run() - 1) / run();
    const bool grouped = levels.group > 0;
    parallel_for(
        stream, here,
        EncodeChunk{source, Rounding{dither_of(info, spec.fields[f])},
                    grouped ? nullptr : grids + f, levels.norm, levels.levels, run(), slice.offset,
                    position, slice.numel, grouped ? scales + first : nullptr,
                    scratch + first * chunk_bytes(run()), chunk_bytes(run()), end + first},
        run());
    first += here;
  });
  run_once(stream, Ends{end, first, before, used});
  parallel_for(stream, first, CopyChunk{scratch, chunk_bytes(run()), end, out + 4 * first}, run());
}

void EliasWire::decode(const Stream& stream, const UnitSpec& spec, const float* scales,
                       const Payload& payload, int64_t before, float weight, bool add,
                       float* arena) const {
  const int64_t all = chunks(spec), bytes = payload.bytes - before;
  WISP_CHECK(4 * all <= bytes && bytes <= capacity(spec), "elias wire: the stream of rank ",
             payload.from, " has ", bytes, " bytes, expected ", 4 * all, " to ", capacity(spec));
  const std::byte* in = payload.data + before;
  const auto* end = reinterpret_cast<const uint32_t*>(in);
  int64_t first = 0;
  each_slice(spec, [&](size_t f, const Slice& slice, int64_t) {
    const int64_t here = (slice.numel + run() - 1) / run();
    const bool grouped = levels.group > 0;
    parallel_for(stream, here,
                 DecodeChunk{end, all, first, before, in + 4 * all, bytes - 4 * all,
                             grouped ? scales + first : scales + f, grouped ? 1 : 0, levels.levels,
                             run(), slice.numel, weight, add, arena + slice.offset,
                             static_cast<int64_t>(f), payload.complaints()},
                 run());
    first += here;
  });
}

}  // namespace wisp
