#include "distributed/exchange/wire_header.h"

#include "core/error.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

/// A bijection of words for each position. Source: Wellons 2018, "Prospecting for hash functions"
/// (lowbias32).
WISP_HD inline uint32_t mix(uint32_t word, uint32_t position) {
  uint32_t x = word ^ (position * 0x9e3779b9u);
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

struct MixedWords {
  using Value = uint32_t;
  const uint32_t* words;
  uint32_t first;  // position of words[0]
  WISP_HD uint32_t identity() const { return 0; }
  WISP_HD uint32_t map(int64_t i) const { return mix(words[i], first + static_cast<uint32_t>(i)); }
  WISP_HD uint32_t combine(uint32_t a, uint32_t b) const { return a + b; }
};

struct Clear {
  uint32_t* sum;
  WISP_HD void operator()() const { *sum = 0; }
};

/// Adds a payload: its whole words' sum, the bytes behind them as one more word, its size.
struct AddPayload {
  const uint32_t* of_words;
  const std::byte* tail;
  int64_t tail_bytes;
  uint32_t bytes, position;  // of the tail
  uint32_t* sum;
  WISP_HD void operator()() const {
    uint32_t word = 0;
    for (int64_t i = 0; i < tail_bytes; ++i) word |= static_cast<uint32_t>(tail[i]) << 8 * i;
    *sum += *of_words + mix(word, position) + mix(bytes, position + 1);
  }
};

struct Read {
  const WireHeader* from;
  WireHeader* into;
  WISP_HD void operator()() const { *into = *from; }
};

struct Write {
  WireHeader header;
  WireHeader* into;
  WISP_HD void operator()() const { *into = header; }
};

}  // namespace

void checksum(const Stream& stream, std::span<const ConstBytes> payloads, uint32_t* sum,
              uint32_t* scratch) {
  run_once(stream, Clear{sum});
  uint32_t position = 0;
  for (const ConstBytes& payload : payloads) {
    const int64_t words = payload.bytes / 4;
    parallel_reduce(stream, words,
                    MixedWords{reinterpret_cast<const uint32_t*>(payload.data), position}, scratch);
    position += static_cast<uint32_t>(words);
    run_once(stream, AddPayload{scratch, payload.data + 4 * words, payload.bytes % 4,
                                static_cast<uint32_t>(payload.bytes), position, sum});
    position += 2;
  }
}

void seal(const Stream& stream, const WireHeader& header, std::span<const ConstBytes> payloads,
          std::byte* into, uint32_t* scratch) {
  auto* written = reinterpret_cast<WireHeader*>(into);
  run_once(stream, Write{header, written});
  checksum(stream, payloads, &written->checksum, scratch);
}

void read_header(const Stream& stream, const std::byte* from, const Tensor& into) {
  run_once(stream, Read{reinterpret_cast<const WireHeader*>(from),
                        reinterpret_cast<WireHeader*>(into.raw())});
}

std::string complaint(const WireHeader& got, const WireHeader& expected) {
  const uint32_t mark = (1u << 24) - 1;
  if ((got.format & mark) != (expected.format & mark)) return "does not begin with a header";
  if (got.format != expected.format)
    return concat("has version ", got.format >> 24, " of the wire format, this program reads ",
                  expected.format >> 24);
  if (got.step != expected.step) return concat("is of step ", got.step, " (modulo 2^32)");
  if (got.slot != expected.slot)
    return concat("is for slot ", got.slot, ", expected ", expected.slot);
  if (got.checksum != expected.checksum)
    return concat("is damaged: its checksum is ", expected.checksum, ", the sender's was ",
                  got.checksum);
  return {};
}

}  // namespace wisp
