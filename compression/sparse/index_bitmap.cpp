// Positions as a bit for each element of a field: bit p % 32 of word p / 32. Each field begins with
// a new word. This is the shortest format above a ratio of about 1 / 6.
#include "compression/slices.h"
#include "compression/sparse/sparse_index.h"

namespace wisp {
namespace {

using sparse::chunks_of, sparse::count_bits, sparse::Span;

int64_t words_of(int64_t numel) { return (numel + 31) / 32; }

struct ClearWords {
  IndexSpace part;
  WISP_HD void operator()(int64_t w) const {
    reinterpret_cast<uint32_t*>(part.data + *part.offset)[w] = 0;
  }
};

/// Writes the bits. A word is written by the chunk that has the word's first entry.
struct WriteBits {
  struct Shared {};
  SparseList list;
  IndexSpace part;
  const int64_t* first;  // first word of each field, then the number of all words
  int64_t fields;
  int64_t* used;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const uint32_t* position = list.position;
    auto* word = reinterpret_cast<uint32_t*>(part.data + *part.offset) + first[f];
    const int64_t end = range.begin + range.count;
    team.each(chunks_of(range.count), [&](int64_t c) {
      const Span span(range, c);
      int64_t e = span.from;
      if (e > range.begin)
        while (e < span.to && position[e] / 32 == position[e - 1] / 32) ++e;
      while (e < span.to) {
        const uint32_t at = position[e] / 32;
        uint32_t bits = 0;
        for (; e < end && position[e] / 32 == at; ++e) bits |= 1u << position[e] % 32;
        word[at] = bits;
      }
    });
    if (f == fields - 1) team.once([&] { *used = *part.offset + 4 * first[fields]; });
  }
};

/// The words of a field, with zeros behind the payload's end.
struct BitmapWords {
  IndexPart part;
  int64_t first, count;
  WISP_HD uint32_t operator()(int64_t w) const {
    const int64_t at = *part.offset + 4 * (first + w);
    if (at + 4 > part.bytes) return 0;
    return *reinterpret_cast<const uint32_t*>(part.data + at);
  }
};

struct ReadBits {
  struct Shared {};
  SparseList list;
  IndexPart part;
  const int64_t* first;
  int64_t fields;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = list.range[f];
    const BitmapWords words{part, first[f], first[f + 1] - first[f]};
    uint32_t* position = list.position + range.begin;
    const int64_t ones = team.scan(
        words.count, [&](int64_t w) { return int64_t{count_bits(words(w))}; },
        [&](int64_t w, int64_t entry) {
          for (uint32_t left = words(w); left != 0 && entry < range.count; left &= left - 1) {
            const int bit = count_bits((left & (0u - left)) - 1);  // lowest set bit
            position[entry++] = static_cast<uint32_t>(32 * w + bit);
          }
        });
    team.each(range.count - ones, [&](int64_t i) { position[ones + i] = kNowhere; });
    team.once([&] {
      if (ones != range.count) part.complaints.add(Wrong::count, f, ones);
      const int64_t end = *part.offset + 4 * first[fields];
      if (f == fields - 1 && end != part.bytes) part.complaints.add(Wrong::end, f, end);
    });
  }
};

class Bitmap final : public IndexFormat {
 public:
  Bitmap() : IndexFormat({.name = "bitmap"}) {}

  int64_t most_bytes(const UnitSpec& spec, const Room&) const override { return 4 * words(spec); }
  int64_t scratch_bytes(const UnitSpec& spec, const Room&) const override {
    return 8 * (std::ssize(spec.fields) + 1);
  }

  void write(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
             const IndexSpace& part, int64_t* used, std::byte* scratch) const override {
    const int64_t* first = put_first_words(stream, spec, scratch);
    const auto fields = std::ssize(spec.fields);
    parallel_for(stream, words(spec), ClearWords{part});
    parallel_teams(stream, fields, WriteBits{list, part, first, fields, used},
                   room.of(spec) / fields);
  }
  void read(const Stream& stream, const UnitSpec& spec, const Room&, const SparseList& list,
            const IndexPart& part, std::byte* scratch) const override {
    const int64_t* first = put_first_words(stream, spec, scratch);
    const auto fields = std::ssize(spec.fields);
    parallel_teams(stream, fields, ReadBits{list, part, first, fields}, spec.numel / fields);
  }

 private:
  static int64_t words(const UnitSpec& spec) {
    return sum_of_fields(spec, [](const Field& field) { return words_of(field.numel); });
  }
  /// Writes the first word of each field, and the number of all words.
  static const int64_t* put_first_words(const Stream& stream, const UnitSpec& spec,
                                        std::byte* scratch) {
    TableWriter table(stream, scratch);
    int64_t first = 0;
    table.put(first);
    for (const Field& field : spec.fields) table.put(first += words_of(field.numel));
    table.finish();
    return reinterpret_cast<const int64_t*>(scratch);
  }
};

}  // namespace

const IndexFormat& bitmap_format() {
  static const Bitmap format;
  return format;
}

}  // namespace wisp
