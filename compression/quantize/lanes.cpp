#include "compression/quantize/lanes.h"

#include "compression/slices.h"

namespace wisp {
namespace {

constexpr int64_t kWords = group::kSize;  // words of a block

struct Words {
  uint32_t word[kWords];
};

struct EncodeLanes {
  using Shared = Words;
  Source source;
  Rounding rounding;
  const Grid* grid;
  int bits, each;
  int64_t offset, position, numel;
  uint32_t* words;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t block, Shared& shared) const {
    group::by_kind(source, [&](const Source& kind) { encode(team, kind, block, shared.word); });
  }
  template <class Team>
  WISP_HD void encode(const Team& team, const Source& kind, int64_t block, uint32_t* word) const {
    const int64_t begin = block * kWords * each;
    const int64_t count =
        numel - begin < kWords * each ? (numel - begin + each - 1) / each : kWords;
    const Grid here = *grid;
    team.each(kWords, [&](int64_t j) { word[j] = 0; });
    for (int lane = 0; lane < each; ++lane) {
      const int64_t at = begin + lane * count;
      const int64_t left = numel - at < count ? numel - at : count;
      if (left <= 0) break;
      levels::take(team, kind, offset + at, position + at, left, here, rounding,
                   [&](int64_t j, int32_t level) {
                     word[j] += static_cast<uint32_t>(level) << (lane * bits);
                   });
    }
    uint32_t* out = words + block * kWords;
    group::each(team, count, [&](int64_t j) { out[j] = word[j]; });
  }
};

struct DecodeLanes {
  using Shared = Words;
  const uint32_t* words;
  const Grid* grid;
  int32_t most;
  int bits, each;
  int64_t numel;
  float weight;
  bool add;
  float* into;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t block, Shared& shared) const {
    const int64_t begin = block * kWords * each;
    const int64_t count =
        numel - begin < kWords * each ? (numel - begin + each - 1) / each : kWords;
    const uint32_t* in = words + block * kWords;
    const uint32_t mask = (uint32_t{1} << bits) - 1u;
    uint32_t shift = 0;
    for (int lane = 0; lane < each; ++lane) shift += static_cast<uint32_t>(most) << (lane * bits);
    const float step = grid->step;
    uint32_t* word = shared.word;
    group::each(team, count, [&](int64_t j) { word[j] = in[j] + shift; });
    for (int lane = 0; lane < each; ++lane) {
      const int64_t at = begin + lane * count;
      const int64_t left = numel - at < count ? numel - at : count;
      if (left <= 0) break;
      group::give(
          team, left,
          [&](int64_t j) {
            const auto sum = static_cast<int32_t>(word[j] >> (lane * bits) & mask) - most;
            return static_cast<float>(sum) * step;
          },
          weight, add, into + at);
    }
  }
};

}  // namespace

Lanes::Lanes(int summands, int levels) : most(int64_t{summands} * levels), bits(1) {
  WISP_CHECK(most <= 1 << 24, "lanes: the sum of ", summands, " workers' levels up to ", levels,
             " is beyond 2^24; send them gathered (compression.scaler = \"own\")");
  while (int64_t{1} << bits < 2 * most + 1) ++bits;
  each = 32 / bits;
}

void Lanes::encode(const Stream& stream, const Source& source, const UnitSpec& spec,
                   const StepInfo& info, bool nearest, const Grid* grids, uint32_t* words) const {
  const int64_t block = kWords * each;
  SmallTeams<EncodeLanes> slices(stream);
  each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
    slices.add((slice.numel + block - 1) / block,
               {source,
                {dither_of(info, spec.fields[f]), nearest},
                grids + f,
                bits,
                each,
                slice.offset,
                position,
                slice.numel,
                words},
               block);
    words += this->words(slice.numel);
  });
  slices.finish();
}

void Lanes::decode(const Stream& stream, const UnitSpec& spec, const uint32_t* words,
                   const Grid* grids, float weight, bool add, float* arena) const {
  const int64_t block = kWords * each;
  SmallTeams<DecodeLanes> slices(stream);
  each_slice(spec, [&](size_t f, const Slice& slice, int64_t) {
    slices.add((slice.numel + block - 1) / block,
               {words, grids + f, static_cast<int32_t>(most), bits, each, slice.numel, weight, add,
                arena + slice.offset},
               block);
    words += this->words(slice.numel);
  });
  slices.finish();
}

}  // namespace wisp
