#include "compression/quantize/elias_wire.h"

#include <algorithm>

#include "compression/quantize/elias.h"
#include "compression/slices.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

WISP_HD inline int64_t chunks_per_team(int64_t run) {
  constexpr int64_t kTeamElements = 1 << 15;
  return run < kTeamElements ? kTeamElements / run : 1;
}

/// A slice for kernels. One team takes several of its chunks.
struct CodedSliceRow {
  int64_t first_item, chunk, chunks;  // index of its first chunk in the unit; their number
  int64_t field, offset, position, numel;
  Dither dither;

  /// visit(c) for each of an item's chunks of `run` elements; c counts the slice's chunks.
  template <class Visit>
  WISP_HD void each_chunk(const Team& team, int64_t item, int64_t run, const Visit& visit) const {
    const int64_t each = chunks_per_team(run);
    const int64_t first = (item - first_item) * each;
    const int64_t left = chunks - first;
    team.each(left < each ? left : each, [&](int64_t c) { visit(first + c); });
  }
};

/// Encodes each chunk into its own slot.
struct EncodeSlices {
  struct Shared {};
  Source source;
  const Grid* fields;  // null: each chunk has its own scale
  Norm norm;
  int levels;
  int64_t run;  // elements of a chunk
  float* scales;
  std::byte* slots;
  int64_t slot_bytes;
  uint32_t* bytes;
  RowTable<CodedSliceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const CodedSliceRow row = table.row_of(item);
    row.each_chunk(team, item, run, [&](int64_t c) { encode(row, c); });
  }

 private:
  WISP_HD void encode(const CodedSliceRow& row, int64_t c) const {
    const int64_t chunk = row.chunk + c;
    const int64_t begin = c * run;
    const int64_t size = row.numel - begin < run ? row.numel - begin : run;
    const Grid grid = fields ? fields[row.field] : own_grid(row.offset + begin, size, chunk);
    const Rounding rounding{row.dither};
    std::byte* slot = slots + chunk * slot_bytes;
    BitWriter bits(slot);
    int64_t next = begin;  // index behind the last written element
    for (int64_t i = begin; i < begin + size; i += group::kSize) {
      int32_t level[group::kSize];
      group::by_kind(source, [&](const Source& kind) {
        levels::take(LoneThread(), kind, row.offset + i, row.position + i,
                     group::size_at(i, begin + size), grid, rounding,
                     [&](int64_t j, int32_t here) { level[j] = here; });
      });
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
    bytes[chunk] = static_cast<uint32_t>(bits.end() - slot);
  }
  WISP_HD Grid own_grid(int64_t at, int64_t size, int64_t chunk) const {
    const double scale = group::by_kind(source, [&](const Source& kind) {
      return levels::scale_of(LoneThread(), kind, at, size, norm);
    });
    return levels::sent_grid(scale, levels, scales + chunk);
  }
};

/// Turns the sizes of chunks into their ends; one team.
struct Ends {
  struct Shared {};
  uint32_t* end;
  int64_t chunks, before;
  int64_t* used;
  WISP_HD void operator()(const Team& team, int64_t, Shared&) const {
    const int64_t total = team.scan(
        chunks, [&](int64_t c) { return int64_t{end[c]}; },
        [&](int64_t c, int64_t begin) { end[c] += static_cast<uint32_t>(begin); });
    team.once([&] { *used = before + 4 * chunks + total; });
  }
};

struct CopyChunk {
  struct Shared {};
  const std::byte* slots;
  int64_t slot_bytes;
  const uint32_t* end;
  std::byte* out;
  WISP_HD void operator()(const Team& team, int64_t c, Shared&) const {
    const int64_t begin = c > 0 ? end[c - 1] : 0;
    const std::byte* from = slots + c * slot_bytes;
    std::byte* to = out + begin;
    team.each(end[c] - begin, [&](int64_t b) { to[b] = from[b]; });
  }
};

/// Decodes each chunk into its slice of the arena. A malformed chunk causes a complaint.
struct DecodeSlices {
  struct Shared {};
  const uint32_t* end;  // ends of all chunks
  int64_t all;          // number of all chunks
  int64_t before;       // bytes of the payload before the stream
  const std::byte* in;
  int64_t bytes;
  const float* scales;  // of each chunk if grouped, else of each field
  bool grouped, add;
  int levels;
  int64_t run;
  float weight;
  float* arena;
  Complaints complaints;
  RowTable<CodedSliceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const CodedSliceRow row = table.row_of(item);
    row.each_chunk(team, item, run, [&](int64_t c) { decode(row, c); });
  }

 private:
  WISP_HD void decode(const CodedSliceRow& row, int64_t c) const {
    const int64_t chunk = row.chunk + c;
    const int64_t size = row.numel - c * run < run ? row.numel - c * run : run;
    float* into = arena + row.offset + c * run;
    if (!add) {
      for (int64_t i = 0; i < size; ++i) into[i] = 0.0f;
    }
    const int64_t from = chunk > 0 ? end[chunk - 1] : 0;
    const int64_t to = end[chunk];
    if (chunk == all - 1 && to != bytes)
      complaints.add(Wrong::end, row.field, before + 4 * all + to);
    if (from > to || to > bytes) return complaints.add(Wrong::code, row.field, chunk);
    const float scale = scales[grouped ? chunk : row.field];
    const float step = Grid::of(static_cast<double>(scale), levels).step;
    BitReader bits(in + from, in + to);
    int64_t next = 0;
    while (!bits.at_padding()) {
      const uint32_t gap = bits.omega();
      const bool negative = bits.take(1) == 1;
      const uint32_t magnitude = bits.omega();
      next += gap;
      if (bits.left() < 0 || gap == 0 || magnitude == 0 || next > size ||
          magnitude > static_cast<uint32_t>(levels))
        return complaints.add(Wrong::code, row.field, chunk);
      const float value = static_cast<float>(magnitude) * step;
      into[next - 1] += weight * (negative ? -value : value);
    }
  }
};

/// Runs the kernel over all slices.
template <class Kernel>
void over_slices(const Stream& stream, const UnitSpec& spec, int64_t run, const StepInfo* info,
                 const Kernel& kernel) {
  const int64_t each = chunks_per_team(run);
  parallel_rows(stream, kernel, each * run, [&](const auto& put) {
    CodedSliceRow row{};
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
      row.chunks = (slice.numel + run - 1) / run;
      row.field = static_cast<int64_t>(f);
      row.offset = slice.offset;
      row.position = position;
      row.numel = slice.numel;
      if (info) row.dither = dither_of(*info, spec.fields[f]);
      put(row, (row.chunks + each - 1) / each);
      row.chunk += row.chunks;
    });
  });
}

}  // namespace

int64_t EliasWire::chunks(const UnitSpec& spec) const {
  return sum_of_slices(spec, [&](int64_t numel) { return (numel + run() - 1) / run(); });
}

int64_t EliasWire::chunk_bytes(int64_t numel) const {
  const int64_t s = levels.levels;
  int64_t bits = numel * (2 + omega_code(static_cast<uint32_t>(s)).length);
  if (levels.norm == Norm::euclidean) bits = std::min(bits, 3 * numel + 2 * s * s);
  return (bits + 7) / 8;
}

int64_t EliasWire::capacity(const UnitSpec& spec) const {
  const int64_t bytes = sum_of_slices(spec, [&](int64_t numel) {
    return numel / run() * chunk_bytes(run()) + chunk_bytes(numel % run());
  });
  WISP_CHECK(bytes <= UINT32_MAX, "elias wire: a unit of ", spec.numel, " elements may need ",
             bytes, " bytes, whose ends have 32 bits: at most ", UINT32_MAX,
             " fit; use a smaller compression.encode_bytes or bucket_bytes, or send a parameter of "
             "this size dense, by a rule of compression.policy");
  return 4 * chunks(spec) + bytes;
}

int64_t EliasWire::scratch_bytes(const UnitSpec& spec) const {
  return chunks(spec) * std::max<int64_t>(1, chunk_bytes(run()));
}

void EliasWire::encode(const Stream& stream, const Source& source, const UnitSpec& spec,
                       const StepInfo& info, const Grid* grids, float* scales, std::byte* out,
                       int64_t before, int64_t* used, std::byte* scratch) const {
  auto* end = reinterpret_cast<uint32_t*>(out);
  const int64_t all = chunks(spec), slot_bytes = chunk_bytes(run());
  over_slices(stream, spec, run(), &info,
              EncodeSlices{source, levels.group > 0 ? nullptr : grids, levels.norm, levels.levels,
                           run(), scales, scratch, slot_bytes, end});
  parallel_teams(stream, 1, Ends{end, all, before, used}, all);
  parallel_teams(stream, all, CopyChunk{scratch, slot_bytes, end, out + 4 * all}, run());
}

void EliasWire::decode(const Stream& stream, const UnitSpec& spec, const float* scales,
                       const Payload& payload, int64_t before, float weight, bool add,
                       float* arena) const {
  const int64_t all = chunks(spec), bytes = payload.bytes - before;
  WISP_CHECK(4 * all <= bytes && bytes <= capacity(spec), "elias wire: the stream of rank ",
             payload.from, " has ", bytes, " bytes, expected ", 4 * all, " to ", capacity(spec));
  const std::byte* in = payload.data + before;
  const auto* end = reinterpret_cast<const uint32_t*>(in);
  over_slices(
      stream, spec, run(), nullptr,
      DecodeSlices{end, all, before, in + 4 * all, bytes - 4 * all, scales, levels.group > 0, add,
                   levels.levels, run(), weight, arena, payload.complaints()});
}

}  // namespace wisp
