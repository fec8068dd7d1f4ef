#include "compression/sparse/spectrum_wire.h"

#include <algorithm>

#include "compression/code.h"
#include "compression/field_reduce.h"
#include "compression/quantize/range_float.h"
#include "compression/sparse/sparse_index.h"
#include "compression/sparse/sparse_list.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace {

constexpr int64_t kPairs = 4096;  // coefficients per team
constexpr int64_t kChunk = 8;     // bitmap words that a thread writes
constexpr int64_t kTile = 256;    // bitmap words per team
constexpr int64_t kCodes = 512;   // codes per team; whole words for every width

int64_t items_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

/// A spectrum for kernels. Each kernel defines its items.
struct SpectrumRow {
  int64_t first_item;
  int64_t field;
  int64_t number;    // index of its first number; a coefficient has two
  int64_t payload;   // index of its first payload word
  int64_t position;  // index of its first kept coefficient
  int64_t part;      // index of its first part: kPairs coefficients, or kTile words
  SpectrumWire wire;
};

/// The words of a spectrum's payload.
template <class Word>
struct SpectrumWords {
  Word* max;  // bits of an f32
  Word* bitmap;
  Word* codes;
  WISP_HD SpectrumWords(Word* payload, const SpectrumRow& row)
      : max(payload + row.payload), bitmap(max + 1), codes(bitmap + row.wire.bitmap_words()) {}
};

/// Runs the kernel over items(wire) items of each spectrum; `part` numbers the items of all
/// spectra.
template <class Items, class Kernel>
void over_spectra(const Stream& stream, Spectra spectra, const Items& items, const Kernel& kernel,
                  int64_t elements) {
  parallel_rows(stream, kernel, elements, [&](const auto& put) {
    SpectrumRow row{};
    for (const FieldSpectrum& of : spectra) {
      row.field = of.field;
      row.wire = of.wire;
      put(row, items(of.wire));
      row.number += 2 * of.wire.coefficients;
      row.payload += of.wire.bytes() / 4;
      row.position += of.wire.kept;
      row.part += items_of(of.wire.coefficients, kPairs);
    }
  });
}
int64_t one_each(const SpectrumWire&) { return 1; }
int64_t each_pairs(const SpectrumWire& wire) { return items_of(wire.coefficients, kPairs); }
int64_t each_tile(const SpectrumWire& wire) { return items_of(wire.bitmap_words(), kTile); }
int64_t each_codes(const SpectrumWire& wire) { return items_of(2 * wire.kept, kCodes); }
static_assert(32 * kTile >= kPairs, "so that tiles are no more than parts");

struct FindMax {
  struct Shared {};
  const float* numbers;
  float* part;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow& row = table.row_of(item);
    const int64_t at = item - row.first_item;
    const int64_t begin = 2 * kPairs * at;
    const int64_t end = begin + 2 * kPairs;
    const int64_t all = 2 * row.wire.coefficients;
    const LargestOf kernel{{.gradient = numbers + row.number}};
    const float max = team.reduce_lanes(begin, end < all ? end : all, kernel);
    team.once([&] { part[row.part + at] = max; });
  }
};

struct WriteMax {
  struct Shared {};
  const float* part;
  uint32_t* payload;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow& row = table.row[item];
    const int64_t parts = (row.wire.coefficients + kPairs - 1) / kPairs;
    const float max = team.reduce_lanes(0, parts, LargestOf{{.gradient = part + row.part}});
    team.once([&] { *SpectrumWords(payload, row).max = float_bits(max); });
  }
};

/// |X_k|² relative to the power of two at the largest part, so that no square overflows.
struct Energy {
  struct Shared {};
  const float* numbers;
  const uint32_t* payload;
  float* energy;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow row = table.row_of(item);
    const int64_t first = (item - row.first_item) * kPairs;
    const int64_t left = row.wire.coefficients - first;
    const float* pair = numbers + row.number + 2 * first;
    float* to = energy + row.number / 2 + first;
    const uint32_t exponent = *SpectrumWords(payload, row).max >> 23;
    const float unit = float_from_bits((254 - (exponent < 253 ? exponent : 253)) << 23);
    team.each(left < kPairs ? left : kPairs, [=](int64_t k) {
      const float re = unit * pair[2 * k];
      const float im = unit * pair[2 * k + 1];
      to[k] = re * re + im * im;
    });
  }
};

struct WriteBitmap {
  struct Shared {};
  const uint32_t* positions;
  uint32_t* payload;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow row = table.row_of(item);
    const int64_t first = (item - row.first_item) * kTile;
    const int64_t left = row.wire.bitmap_words() - first;
    const int64_t words = left < kTile ? left : kTile;
    team.each((words + kChunk - 1) / kChunk, [&](int64_t chunk) {
      const int64_t begin = chunk * kChunk;
      write(positions + row.position, row.wire.kept, first + begin,
            first + (begin + kChunk < words ? begin + kChunk : words),
            SpectrumWords(payload, row).bitmap);
    });
  }

 private:
  WISP_HD static void write(const uint32_t* position, int64_t kept, int64_t begin, int64_t end,
                            uint32_t* bitmap) {
    int64_t at = sparse::count_below(position, kept, 32 * begin);
    for (int64_t w = begin; w < end; ++w) {
      uint32_t word = 0;
      for (; at < kept && position[at] / 32 == w; ++at) word |= 1u << (position[at] % 32);
      bitmap[w] = word;
    }
  }
};

/// Writes the codes, then joins them to words: 32 codes fill as many words as a code has bits.
struct WriteCoefficients {
  struct Shared {
    uint32_t code[kCodes];
  };
  const float* numbers;
  const uint32_t* positions;
  uint32_t* payload;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const SpectrumRow row = table.row_of(item);
    const int64_t tile = item - row.first_item;
    const float* spectrum = numbers + row.number;
    const uint32_t* position = positions + row.position;
    const SpectrumWords to(payload, row);
    const int bits = row.wire.bits;
    const RangeFloat format(bits, row.wire.mantissa, float_from_bits(*to.max));
    const int64_t first = tile * kCodes;
    team.each(kCodes, [&](int64_t i) {
      const int64_t at = first + i;
      shared.code[i] = at < 2 * row.wire.kept
                           ? format.encode(spectrum[2 * int64_t{position[at / 2]} + at % 2])
                           : 0;
    });
    const int64_t most = kCodes / 32 * bits;
    const int64_t left = row.wire.code_words() - tile * most;
    uint32_t* out = to.codes + tile * most;
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
  const uint32_t* payload;
  int64_t* first;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow& row = table.row_of(item);
    const int64_t at = item - row.first_item;
    const Tile tile(SpectrumWords(payload, row).bitmap, row.wire.bitmap_words(), at);
    const int64_t count = team.scan(
        tile.count, [&](int64_t w) { return int64_t{sparse::count_bits(tile.word[w])}; },
        [](int64_t, int64_t) {});
    team.once([&] { first[row.part + at] = count; });
  }
};

WISP_HD inline bool in_range(float max) { return 0.0f <= max && max <= kLargest<float>; }

/// Finds the first coefficient of each tile, and checks the spectrum; -1 marks a malformed one.
struct Judge {
  struct Shared {};
  const uint32_t* payload;
  int64_t* first;
  Complaints complaints;
  RowTable<SpectrumRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow& row = table.row[item];
    const SpectrumWords from(payload, row);
    int64_t* of_tile = first + row.part;
    const int64_t words = row.wire.bitmap_words();
    const int64_t total =
        team.scan((words + kTile - 1) / kTile, [&](int64_t tile) { return of_tile[tile]; },
                  [&](int64_t tile, int64_t before) { of_tile[tile] = before; });
    team.once([&] {
      const float max = float_from_bits(*from.max);
      const auto rest = static_cast<uint32_t>(row.wire.coefficients % 32);
      const bool within = rest == 0 || from.bitmap[words - 1] >> rest == 0;
      if (total != row.wire.kept) complaints.add(Wrong::count, row.field, total);
      if (!in_range(max)) complaints.add(Wrong::scale, row.field, 0);
      if (!within) complaints.add(Wrong::position, row.field, total - 1);
      if (total != row.wire.kept || !within || !in_range(max)) of_tile[0] = -1;
    });
  }
};

struct AddCoefficients {
  struct Shared {};
  const uint32_t* payload;
  const int64_t* first;
  float* numbers;
  RowTable<SpectrumRow> table = {};

  WISP_HD static uint32_t code(const uint32_t* codes, int64_t words, int bits, int64_t i) {
    const int64_t word = i * bits / 32;
    const uint64_t low = codes[word];
    const uint64_t high = word + 1 < words ? codes[word + 1] : 0;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    return static_cast<uint32_t>((high << 32 | low) >> (i * bits % 32) & mask);
  }
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const SpectrumRow row = table.row_of(item);
    if (first[row.part] < 0) return;
    const int64_t at = item - row.first_item;
    const SpectrumWords from(payload, row);
    const int64_t words = row.wire.code_words();
    const RangeFloat format(row.wire.bits, row.wire.mantissa, float_from_bits(*from.max));
    const Tile tile(from.bitmap, row.wire.bitmap_words(), at);
    float* to = numbers + row.number + 2 * 32 * kTile * at;
    team.scan(
        tile.count, [&](int64_t w) { return int64_t{sparse::count_bits(tile.word[w])}; },
        [&](int64_t w, int64_t before) {
          int64_t j = first[row.part + at] + before;
          for (uint32_t left = tile.word[w]; left != 0; left &= left - 1, ++j) {
            float* pair = to + 2 * (32 * w + sparse::count_bits((left & (0u - left)) - 1));
            pair[0] += format.decode(code(from.codes, words, row.wire.bits, 2 * j));
            pair[1] += format.decode(code(from.codes, words, row.wire.bits, 2 * j + 1));
          }
        });
  }
};

/// The energies of each spectrum, for select_of_arrays().
auto energies_of(Spectra spectra) {
  return [spectra](int64_t f) {
    const FieldSpectrum& of = spectra[static_cast<size_t>(f)];
    return SelectArray{of.wire.coefficients, of.wire.kept, of.random};
  };
}

int64_t all_parts(Spectra spectra) {
  int64_t parts = 0;
  for (const FieldSpectrum& of : spectra) parts += each_pairs(of.wire);
  return parts;
}

/// Scratch of pack_spectra().
struct Packing {
  float* max;  // indexed by part
  float* energy;
  uint32_t* positions;
  std::byte* select;

  Packing(Cursor& cursor, Spectra spectra) {
    int64_t coefficients = 0, kept = 0;
    for (const FieldSpectrum& of : spectra) {
      coefficients += of.wire.coefficients;
      kept += of.wire.kept;
    }
    max = cursor.take<float>(all_parts(spectra));
    energy = cursor.take<float>(coefficients);
    positions = cursor.take<uint32_t>(kept);
    select =
        cursor.take<std::byte>(select_of_arrays_bytes(std::ssize(spectra), energies_of(spectra)));
  }
};

/// Scratch of add_spectra().
struct Adding {
  int64_t* first;  // index of each tile's first coefficient

  Adding(Cursor& cursor, Spectra spectra) : first(cursor.take<int64_t>(all_parts(spectra))) {}
};

}  // namespace

int64_t spectra_scratch_bytes(Spectra spectra) {
  return std::max(layout_bytes<Packing>(spectra), layout_bytes<Adding>(spectra));
}

void pack_spectra(const Stream& stream, Spectra spectra, const float* numbers, std::byte* payload,
                  std::byte* memory) {
  auto* words = reinterpret_cast<uint32_t*>(payload);
  const auto scratch = lay_out<Packing>(memory, spectra);
  over_spectra(stream, spectra, each_pairs, FindMax{numbers, scratch.max}, 2 * kPairs);
  over_spectra(stream, spectra, one_each, WriteMax{scratch.max, words}, 1);
  over_spectra(stream, spectra, each_pairs, Energy{numbers, words, scratch.energy}, kPairs);
  select_of_arrays(stream, std::ssize(spectra), energies_of(spectra), scratch.energy,
                   scratch.positions, scratch.select);
  over_spectra(stream, spectra, each_tile, WriteBitmap{scratch.positions, words}, 32 * kTile);
  over_spectra(stream, spectra, each_codes, WriteCoefficients{numbers, scratch.positions, words},
               kCodes);
}

void add_spectra(const Stream& stream, Spectra spectra, const std::byte* payload,
                 const Complaints& complaints, float* numbers, std::byte* memory) {
  const auto* words = reinterpret_cast<const uint32_t*>(payload);
  int64_t* first = lay_out<Adding>(memory, spectra).first;
  over_spectra(stream, spectra, each_tile, CountBits{words, first}, kTile);
  over_spectra(stream, spectra, one_each, Judge{words, first, complaints}, kTile);
  over_spectra(stream, spectra, each_tile, AddCoefficients{words, first, numbers}, 32 * kTile);
}

}  // namespace wisp
