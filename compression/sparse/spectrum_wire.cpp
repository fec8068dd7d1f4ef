#include "compression/sparse/spectrum_wire.h"

#include <algorithm>

#include "compression/code.h"
#include "compression/field_reduce.h"
#include "compression/quantize/range_float.h"
#include "compression/sparse/count_bits.h"
#include "compression/sparse/select.h"
#include "core/error.h"

namespace wisp {
namespace {

constexpr int64_t kChunk = 8;    // bitmap words that a kernel call walks
constexpr int64_t kTile = 256;   // bitmap words of a team
constexpr int64_t kCodes = 512;  // codes of a team: whole words, whatever their width
constexpr float kLargest = 3.402823466e38f;

int64_t chunks_of(int64_t words) { return (words + kChunk - 1) / kChunk; }
int64_t tiles_of(int64_t words) { return (words + kTile - 1) / kTile; }

/// |X_k|², in units of the power of two at the largest part: no square overflows.
struct Energy {
  const float* spectrum;
  const float* max;
  float* energy;
  WISP_HD void operator()(int64_t k) const {
    const uint32_t exponent = float_bits(*max) >> 23;
    const float unit = float_from_bits((254 - (exponent < 253 ? exponent : 253)) << 23);
    const float re = unit * spectrum[2 * k];
    const float im = unit * spectrum[2 * k + 1];
    energy[k] = re * re + im * im;
  }
};

struct WriteBitmap {
  const uint32_t* positions;
  int64_t kept, words;
  uint32_t* bitmap;
  WISP_HD void operator()(int64_t chunk) const {
    const int64_t end = chunk * kChunk + kChunk < words ? chunk * kChunk + kChunk : words;
    int64_t low = 0, high = kept;  // the first position of this chunk
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (positions[middle] < static_cast<uint64_t>(chunk * kChunk * 32)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (int64_t w = chunk * kChunk; w < end; ++w) {
      uint32_t word = 0;
      for (; low < kept && positions[low] / 32 == w; ++low) word |= 1u << (positions[low] % 32);
      bitmap[w] = word;
    }
  }
};

/// The codes, then words of them: 32 codes fill as many words as a code has bits.
struct WriteCodes {
  struct Shared {
    uint32_t code[kCodes];
  };
  const float* spectrum;
  const uint32_t* positions;
  int64_t kept, words;
  int bits, mantissa;
  const float* max;
  uint32_t* codes;
  WISP_HD void operator()(const Team& team, int64_t tile, Shared& shared) const {
    const RangeFloat format(bits, mantissa, *max);
    const int64_t first = tile * kCodes;
    team.each(kCodes, [&](int64_t i) {
      const int64_t at = first + i;
      shared.code[i] =
          at < 2 * kept ? format.encode(spectrum[2 * int64_t{positions[at / 2]} + at % 2]) : 0;
    });
    const int64_t most = kCodes / 32 * bits;
    const int64_t left = words - tile * most;
    uint32_t* out = codes + tile * most;
    team.each(left < most ? left : most, [&](int64_t w) {
      const int begin = 32 * static_cast<int>(w);
      int i = begin / bits;
      uint32_t word = shared.code[i] >> (begin - i * bits);
      for (int at = (i + 1) * bits - begin; at < 32; at += bits) word |= shared.code[++i] << at;
      out[w] = word;
    });
  }
};

/// The words of a tile of the bitmap.
struct Tile {
  const uint32_t* word;
  int64_t count;
  WISP_HD Tile(const uint32_t* bitmap, int64_t words, int64_t tile)
      : word(bitmap + tile * kTile),
        count(words - tile * kTile < kTile ? words - tile * kTile : kTile) {}
};

struct CountBits {
  struct Shared {};
  const uint32_t* bitmap;
  int64_t words;
  int64_t* first;
  WISP_HD void operator()(const Team& team, int64_t at, Shared&) const {
    const Tile tile(bitmap, words, at);
    const int64_t count = team.scan(
        tile.count, [&](int64_t w) { return int64_t{count_bits(tile.word[w])}; },
        [](int64_t, int64_t) {});
    team.once([&] { first[at] = count; });
  }
};

/// The parts of pack's scratch.
struct Packing {
  float* energy;
  uint32_t* positions;
  std::byte* select;

  Packing(Cursor& cursor, const Slice& all, int64_t kept)
      : energy(cursor.take<float>(all.numel)),
        positions(cursor.take<uint32_t>(kept)),
        select(cursor.take<std::byte>(select_topk_bytes({&all, 1}, kept))) {}
};

/// The parts of add's.
struct Adding {
  int64_t* visited;  // tiles: none of a payload that is not well-formed
  int64_t* first;    // coefficient of each tile

  Adding(Cursor& cursor, int64_t tiles)
      : visited(cursor.take<int64_t>(1)), first(cursor.take<int64_t>(tiles)) {}
};

WISP_HD inline bool in_range(float max) { return 0.0f <= max && max <= kLargest; }

/// By one team.
struct Judge {
  struct Shared {};
  const float* max;
  const uint32_t* bitmap;
  int64_t coefficients, kept, words, tiles;
  int64_t *first, *visited;
  Complaints complaints;
  int64_t field;
  WISP_HD void operator()(const Team& team, int64_t, Shared&) const {
    const int64_t total = team.scan(
        tiles, [&](int64_t tile) { return first[tile]; },
        [&](int64_t tile, int64_t before) { first[tile] = before; });
    team.once([&] {
      const uint32_t rest = static_cast<uint32_t>(coefficients % 32);
      const bool within = rest == 0 || bitmap[words - 1] >> rest == 0;
      if (total != kept) complaints.add(Wrong::count, field, total);
      if (!in_range(*max)) complaints.add(Wrong::scale, field, 0);
      if (!within) complaints.add(Wrong::position, field, total - 1);
      *visited = total == kept && within && in_range(*max) ? tiles : 0;
    });
  }
};

struct AddCoefficients {
  struct Shared {};
  const int64_t* visited;
  const float* max;
  const uint32_t* bitmap;
  const uint32_t* codes;
  int64_t bitmap_words, code_words;
  int bits, mantissa;
  const int64_t* first;
  float* spectrum;

  WISP_HD uint32_t code(int64_t i) const {
    const int64_t word = i * bits / 32;
    const uint64_t low = codes[word];
    const uint64_t high = word + 1 < code_words ? codes[word + 1] : 0;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    return static_cast<uint32_t>((high << 32 | low) >> (i * bits % 32) & mask);
  }
  WISP_HD void operator()(const Team& team, int64_t at, Shared&) const {
    if (at >= *visited) return;
    const RangeFloat format(bits, mantissa, *max);
    const Tile tile(bitmap, bitmap_words, at);
    float* to = spectrum + 2 * 32 * kTile * at;
    team.scan(
        tile.count, [&](int64_t w) { return int64_t{count_bits(tile.word[w])}; },
        [&](int64_t w, int64_t before) {
          int64_t j = first[at] + before;
          for (uint32_t left = tile.word[w]; left != 0; left &= left - 1, ++j) {
            float* pair = to + 2 * (32 * w + count_bits((left & (0u - left)) - 1));
            pair[0] += format.decode(code(2 * j));
            pair[1] += format.decode(code(2 * j + 1));
          }
        });
  }
};

}  // namespace

int64_t SpectrumWire::scratch_bytes() const {
  return std::max(layout_bytes<Packing>(all(), kept_),
                  layout_bytes<Adding>(tiles_of(bitmap_words())));
}

void SpectrumWire::pack(const Stream& stream, const float* spectrum, const Philox& random,
                        std::byte* payload, std::byte* scratch) const {
  auto* max = reinterpret_cast<float*>(payload);
  auto* bitmap = reinterpret_cast<uint32_t*>(payload) + 1;
  const Slice all = this->all();
  const auto [energy, positions, select] = lay_out<Packing>(scratch, all, kept_);
  parallel_reduce(stream, 2 * coefficients_, LargestOf{{.gradient = spectrum}}, max);
  parallel_for(stream, coefficients_, Energy{spectrum, max, energy});
  select_topk(stream, SelectFrom<Source>{{&all, 1}, {.gradient = energy}, kept_, random}, positions,
              select);
  parallel_for(stream, chunks_of(bitmap_words()),
               WriteBitmap{positions, kept_, bitmap_words(), bitmap});
  parallel_teams(stream, (2 * kept_ + kCodes - 1) / kCodes,
                 WriteCodes{spectrum, positions, kept_, code_words(), bits_, mantissa_, max,
                            bitmap + bitmap_words()},
                 kCodes);
}

void SpectrumWire::add(const Stream& stream, const std::byte* payload, const Complaints& complaints,
                       int64_t field, float* spectrum, std::byte* scratch) const {
  const auto* max = reinterpret_cast<const float*>(payload);
  const auto* bitmap = reinterpret_cast<const uint32_t*>(payload) + 1;
  const int64_t tiles = tiles_of(bitmap_words());
  const auto [visited, first] = lay_out<Adding>(scratch, tiles);
  parallel_teams(stream, tiles, CountBits{bitmap, bitmap_words(), first}, kTile);
  parallel_teams(stream, 1,
                 Judge{max, bitmap, coefficients_, kept_, bitmap_words(), tiles, first, visited,
                       complaints, field},
                 tiles);
  parallel_teams(stream, tiles,
                 AddCoefficients{visited, max, bitmap, bitmap + bitmap_words(), bitmap_words(),
                                 code_words(), bits_, mantissa_, first, spectrum},
                 32 * kTile);
}

}  // namespace wisp
