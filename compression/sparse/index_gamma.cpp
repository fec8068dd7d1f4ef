// Positions as Elias-gamma codes of the gaps between entries. A gap is a position minus the one
// before (for a field's first position, plus 1). The code of g >= 1, with q = floor(log2 g), is q
// zero bits, a one, and the q bits of g below its highest. Bits fill 32-bit words from the lowest
// up. 256 entries of a field form a chunk, which begins with a new word, so that chunks are written
// and read in parallel:
//   u16 words[chunks]   size of each chunk, fields one after the other; filled up to 4 bytes
//   u32 code[...]
// k gaps with a sum of at most n need the most bits if they are powers of two as equal as possible.
// With q = floor(log2(n / k)), these are k (2 q + 1) bits, and 2 more for each of the floor((n - k
// 2^q) / 2^q) gaps that can be doubled; never more than k (2 log2(n / k) + 1). Source: Elias 1975;
// chunks are ours.
#include "compression/slices.h"
#include "compression/sparse/sparse_index.h"

namespace wisp {
namespace {

using sparse::chunks_of, sparse::Span;

WISP_HD inline int log2_of(uint32_t number) {
  int log = 0;
  for (int half = 16; half > 0; half /= 2) {
    const bool more = number >> half != 0;
    log += more ? half : 0;
    number = more ? number >> half : number;
  }
  return log;
}

WISP_HD inline uint32_t gap_before(const Range& range, const uint32_t* position, int64_t e) {
  return e > range.begin ? position[e] - position[e - 1] : position[e] + 1;
}

/// Device words: the first chunk of each field, and the first word of each chunk.
struct Chunks {
  int64_t* first;  // [fields + 1]
  int64_t* word;   // [chunks + 1]

  Chunks(Cursor& cursor, const UnitSpec& spec, const Room& room)
      : first(cursor.take<int64_t>(std::ssize(spec.fields) + 1)),
        word(cursor.take<int64_t>(most(spec, room) + 1)) {}
  static int64_t most(const UnitSpec& spec, const Room& room) {
    return sum_of_fields(spec, [&](const Field& field) { return chunks_of(room.of(field)); });
  }
};

WISP_HD inline int64_t table_bytes(int64_t chunks) { return (2 * chunks + 3) / 4 * 4; }

struct CountWords {
  struct Shared {};
  SparseList list;
  int64_t fields;
  Chunks chunks;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const int64_t first = team.scan(
        f, [this](int64_t g) { return chunks_of(list.range[g].count); }, [](int64_t, int64_t) {});
    const int64_t count = chunks_of(range.count);
    team.each(count, [&](int64_t c) {
      const Span span(range, c);
      int64_t bits = 0;
      for (int64_t e = span.from; e < span.to; ++e)
        bits += 2 * log2_of(gap_before(range, list.position, e)) + 1;
      chunks.word[first + c] = (bits + 31) / 32;
    });
    team.once([&] {
      chunks.first[f] = first;
      if (f == fields - 1) chunks.first[fields] = first + count;
    });
  }
};

/// Writes the table and the first word of each chunk; one team.
struct WriteTable {
  struct Shared {};
  Chunks chunks;
  int64_t fields;
  IndexSpace part;
  int64_t* used;
  WISP_HD void operator()(const Team& team, int64_t, Shared&) const {
    auto* table = reinterpret_cast<uint16_t*>(part.data + *part.offset);
    const int64_t count = chunks.first[fields];
    const int64_t total = team.scan(
        count, [&](int64_t c) { return chunks.word[c]; },
        [&](int64_t c, int64_t before) {
          table[c] = static_cast<uint16_t>(chunks.word[c]);
          chunks.word[c] = before;
        });
    team.once([&] {
      chunks.word[count] = total;
      if (count % 2 == 1) table[count] = 0;
      *used = *part.offset + table_bytes(count) + 4 * total;
    });
  }
};

struct WriteGammaCodes {
  struct Shared {};
  SparseList list;
  int64_t fields;
  Chunks chunks;
  IndexSpace part;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    auto* code =
        reinterpret_cast<uint32_t*>(part.data + *part.offset + table_bytes(chunks.first[fields]));
    const int64_t* word = chunks.word + chunks.first[f];
    team.each(chunks_of(range.count),
              [&](int64_t c) { write_chunk(range, Span(range, c), code + word[c]); });
  }

 private:
  WISP_HD void write_chunk(const Range& range, const Span& span, uint32_t* out) const {
    uint64_t waiting = 0;  // held bits, fewer than 32 between codes
    int held = 0;
    const auto write_word = [&] {
      if (held < 32) return;
      *out++ = static_cast<uint32_t>(waiting);
      waiting >>= 32;
      held -= 32;
    };
    for (int64_t e = span.from; e < span.to; ++e) {
      const uint32_t gap = gap_before(range, list.position, e);
      const int log = log2_of(gap);
      const uint32_t rest = gap ^ 1u << log;
      held += log;  // the code's zeros
      write_word();
      waiting |= (uint64_t{rest} << 1 | 1u) << held;
      held += log + 1;
      write_word();
    }
    if (held > 0) *out = static_cast<uint32_t>(waiting);
  }
};

/// Reads the first word of each chunk from the payload's table. A chunk that would exceed the
/// payload ends with it. One team.
struct ReadTable {
  struct Shared {};
  const Range* range;
  Chunks chunks;
  int64_t fields;
  IndexPart part;
  WISP_HD void operator()(const Team& team, int64_t, Shared&) const {
    const auto* table = reinterpret_cast<const uint16_t*>(part.data + *part.offset);
    const int64_t count = team.scan(
        fields, [&](int64_t f) { return chunks_of(range[f].count); },
        [&](int64_t f, int64_t before) { chunks.first[f] = before; });
    const int64_t words = (part.bytes - *part.offset - table_bytes(count)) / 4;
    const int64_t total = team.scan(
        count, [&](int64_t c) { return words > 0 ? int64_t{table[c]} : 0; },
        [&](int64_t c, int64_t before) { chunks.word[c] = before < words ? before : words; });
    team.once([&] {
      chunks.first[fields] = count;
      chunks.word[count] = total < words ? total : words;
      const int64_t end = *part.offset + table_bytes(count) + 4 * total;
      if (end != part.bytes) part.complaints.add(Wrong::end, fields - 1, end);
    });
  }
};

/// The 64 bits from `bit` on, with zeros behind the end.
WISP_HD inline uint64_t window(const uint32_t* word, int64_t words, int64_t bit) {
  const int64_t at = bit / 32;
  const int shift = static_cast<int>(bit % 32);
  const uint64_t low = at < words ? word[at] : 0u;
  const uint64_t middle = at + 1 < words ? word[at + 1] : 0u;
  const uint64_t high = at + 2 < words ? word[at + 2] : 0u;
  const uint64_t bits = low | middle << 32;
  return shift > 0 ? bits >> shift | high << (64 - shift) : bits;
}

/// Reads the gaps between a field's entries (0: malformed), then replaces them by positions.
struct ReadCodes {
  struct Shared {};
  SparseList list;
  int64_t fields;
  Chunks chunks;
  IndexPart part;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const auto* code = reinterpret_cast<const uint32_t*>(part.data + *part.offset +
                                                         table_bytes(chunks.first[fields]));
    const int64_t* word = chunks.word + chunks.first[f];
    team.each(chunks_of(range.count), [&](int64_t c) {
      read_chunk(Span(range, c), code + word[c], word[c + 1] - word[c]);
    });
    uint32_t* position = list.position + range.begin;
    team.scan(
        range.count, [&](int64_t i) { return int64_t{position[i]}; },
        [&](int64_t i, int64_t before) {
          const int64_t next = before + position[i];
          const bool good = position[i] > 0 && next <= kNowhere;
          position[i] = good ? static_cast<uint32_t>(next - 1) : kNowhere;
        });
  }

 private:
  WISP_HD void read_chunk(const Span& span, const uint32_t* code, int64_t words) const {
    uint32_t* gap = list.position;
    int64_t bit = 0;
    for (int64_t e = span.from; e < span.to; ++e) {
      const uint64_t bits = window(code, words, bit);
      const auto low = static_cast<uint32_t>(bits);
      // The lowest set bit ends the zeros.
      const int log = log2_of(low & (0u - low));
      gap[e] = low == 0
                   ? 0u
                   : 1u << log | (static_cast<uint32_t>(bits >> (log + 1)) & ((1u << log) - 1));
      bit += 2 * log + 1;
    }
  }
};

class Gamma final : public IndexFormat {
 public:
  Gamma() : IndexFormat({.name = "gamma"}) {}

  int64_t most_bytes(const UnitSpec& spec, const Room& room) const override {
    const int64_t words = sum_of_fields(spec, [&](const Field& field) {
      const int64_t k = room.of(field);
      return (most_bits(field.numel, k) + 31 * chunks_of(k)) / 32;
    });
    return table_bytes(Chunks::most(spec, room)) + 4 * words;
  }
  int64_t scratch_bytes(const UnitSpec& spec, const Room& room) const override {
    return layout_bytes<Chunks>(spec, room);
  }

  void write(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
             const IndexSpace& part, int64_t* used, std::byte* scratch) const override {
    const auto fields = std::ssize(spec.fields);
    const auto chunks = lay_out<Chunks>(scratch, spec, room);
    const int64_t each = room.of(spec) / fields;
    parallel_teams(stream, fields, CountWords{list, fields, chunks}, each);
    parallel_teams(stream, 1, WriteTable{chunks, fields, part, used}, room.of(spec));
    parallel_teams(stream, fields, WriteGammaCodes{list, fields, chunks, part}, each);
  }
  void read(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const IndexPart& part, std::byte* scratch) const override {
    const auto fields = std::ssize(spec.fields);
    const auto chunks = lay_out<Chunks>(scratch, spec, room);
    parallel_teams(stream, 1, ReadTable{list.range, chunks, fields, part}, room.of(spec));
    parallel_teams(stream, fields, ReadCodes{list, fields, chunks, part}, room.of(spec) / fields);
  }

 private:
  /// The most bits of up to k codes. Beyond n / 2 gaps, fewer and longer ones take more.
  static int64_t most_bits(int64_t numel, int64_t k) {
    k = std::min(k, (numel + 1) / 2);
    const int log = log2_of(static_cast<uint32_t>(numel / k));
    const int64_t doubled = (numel - (k << log)) >> log;
    return k * (2 * log + 1) + 2 * doubled;
  }
};

}  // namespace

const IndexFormat& gamma_format() {
  static const Gamma format;
  return format;
}

}  // namespace wisp
