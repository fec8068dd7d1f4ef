// Positions as a bit for each element of a field: bit p % 32 of word p / 32; each field begins with
// a word. The shortest above a ratio of about 1 / 6.
#include "compression/sparse/count_bits.h"
#include "compression/sparse/sparse_index.h"

namespace wisp {
namespace {

using sparse::chunks_of;
using sparse::Span;

constexpr int64_t kWords = 64;  // that a kernel call reads in order

int64_t words_of(int64_t numel) { return (numel + 31) / 32; }

struct ClearWords {
  IndexSpace part;
  WISP_HD void operator()(int64_t w) const {
    reinterpret_cast<uint32_t*>(part.data + *part.offset)[w] = 0;
  }
};

/// Each word is written by the chunk that has its first entry.
struct WriteBits {
  const Range* range;
  const uint32_t* position;
  IndexSpace part;
  int64_t first;  // word of the field
  WISP_HD void operator()(int64_t c) const {
    auto* word = reinterpret_cast<uint32_t*>(part.data + *part.offset) + first;
    const Span span(*range, c);
    const int64_t end = range->begin + range->count;
    int64_t e = span.from;
    if (e > range->begin)
      while (e < span.to && position[e] / 32 == position[e - 1] / 32) ++e;
    while (e < span.to) {
      const uint32_t at = position[e] / 32;
      uint32_t bits = 0;
      for (; e < end && position[e] / 32 == at; ++e) bits |= 1u << position[e] % 32;
      word[at] = bits;
    }
  }
};

struct Finish {
  IndexSpace part;
  int64_t words;
  int64_t* used;
  WISP_HD void operator()() const { *used = *part.offset + 4 * words; }
};

struct Forget {
  const Range* range;
  uint32_t* position;
  WISP_HD void operator()(int64_t i) const { position[range->begin + i] = kNowhere; }
};

/// A field's words; zeros behind the payload's end.
struct Words {
  IndexPart part;
  int64_t bytes;
  int64_t first, count;
  WISP_HD uint32_t operator()(int64_t w) const {
    const int64_t at = *part.offset + 4 * (first + w);
    if (at + 4 > bytes) return 0;
    return *reinterpret_cast<const uint32_t*>(part.data + at);
  }
};

struct CountOnes {
  Words words;
  int64_t* chunk;
  WISP_HD void operator()(int64_t c) const {
    const int64_t end = (c + 1) * kWords < words.count ? (c + 1) * kWords : words.count;
    int64_t count = 0;
    for (int64_t w = c * kWords; w < end; ++w) count += count_bits(words(w));
    chunk[c] = count;
  }
};

struct ReadBits {
  Words words;
  const Range* range;
  const int64_t* chunk;
  uint32_t* position;
  WISP_HD void operator()(int64_t c) const {
    const int64_t end = (c + 1) * kWords < words.count ? (c + 1) * kWords : words.count;
    int64_t entry = chunk[c];
    for (int64_t w = c * kWords; w < end; ++w) {
      for (uint32_t left = words(w); left != 0 && entry < range->count; left &= left - 1) {
        const int bit = count_bits((left & (0u - left)) - 1);  // the lowest
        position[range->begin + entry++] = static_cast<uint32_t>(32 * w + bit);
      }
    }
  }
};

class Bitmap final : public IndexFormat {
 public:
  const char* name() const override { return "bitmap"; }
  int64_t most_bytes(const UnitSpec& spec, const Room&) const override { return 4 * words(spec); }
  int64_t scratch_bytes(const UnitSpec& spec, const Room&) const override {
    int64_t chunks = 0;
    for (const Field& field : spec.fields) chunks = std::max(chunks, read_chunks(field));
    return 8 * chunks;
  }

  void write(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
             const IndexSpace& part, int64_t* used, std::byte*) const override {
    parallel_for(stream, words(spec), ClearWords{part});
    int64_t first = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Field& field = spec.fields[f];
      parallel_for(stream, chunks_of(room.of(field)),
                   WriteBits{list.range + f, list.position, part, first});
      first += words_of(field.numel);
    }
    run_once(stream, Finish{part, first, used});
  }
  void read(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
            const IndexPart& part, int64_t bytes, std::byte* scratch) const override {
    auto* chunk = reinterpret_cast<int64_t*>(scratch);
    int64_t first = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Field& field = spec.fields[f];
      const Range* range = list.range + f;
      const Words of_field{part, bytes, first, words_of(field.numel)};
      parallel_for_counted(stream, &range->count, room.of(field), Forget{range, list.position});
      parallel_for(stream, read_chunks(field), CountOnes{of_field, chunk});
      run_once(stream, sparse::SumBefore{chunk, read_chunks(field)});
      parallel_for(stream, read_chunks(field), ReadBits{of_field, range, chunk, list.position});
      first += of_field.count;
    }
  }
  int64_t end_on_host(const UnitSpec& spec, const SparseList& list, const IndexPart& part,
                      int64_t bytes) const override {
    int64_t first = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Words of_field{part, bytes, first, words_of(spec.fields[f].numel)};
      int64_t count = 0;
      for (int64_t w = 0; w < of_field.count; ++w) count += count_bits(of_field(w));
      if (count != list.range[f].count) return -1;
      first += of_field.count;
    }
    return *part.offset + 4 * first;
  }

 private:
  static int64_t words(const UnitSpec& spec) {
    int64_t count = 0;
    for (const Field& field : spec.fields) count += words_of(field.numel);
    return count;
  }
  static int64_t read_chunks(const Field& field) {
    return (words_of(field.numel) + kWords - 1) / kWords;
  }
};

}  // namespace

const IndexFormat& bitmap_format() {
  static const Bitmap format;
  return format;
}

}  // namespace wisp
