#include "distributed/exchange/wire_header.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/loops/parallel_rows.h"

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

/// A payload for kernels, with the range of its whole words.
struct PayloadRow : RangeRow {
  const std::byte* data;
  int64_t bytes, position;  // position: index of its first word in the message
  uint32_t* sum;
};

/// Adds a chunk of a payload to its message's checksum. The first chunk also adds the size, and the
/// bytes behind the whole words as one more word.
struct AddToChecksum {
  struct Shared {};
  RowTable<PayloadRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PayloadRow& row = table.row_of(item);
    const int64_t from = row.from(item);
    const uint32_t sum =
        team.reduce(row.count(item), MixedWords{reinterpret_cast<const uint32_t*>(row.data) + from,
                                                static_cast<uint32_t>(row.position + from)});
    team.once([&] {
      add_in_common(row.sum, sum);
      if (item > row.first_item) return;
      uint32_t word = 0;
      for (int64_t at = 4 * row.end; at < row.bytes; ++at)
        word |= static_cast<uint32_t>(row.data[at]) << 8 * (at - 4 * row.end);
      const auto position = static_cast<uint32_t>(row.position + row.end);
      add_in_common(row.sum,
                    mix(word, position) + mix(static_cast<uint32_t>(row.bytes), position + 1));
    });
  }
};

/// A message's header for kernels.
struct HeaderRow {
  int64_t first_item;
  const WireHeader* from;  // null: the kernel's
  WireHeader* into;
  uint32_t* sum;
};

/// Copies a header, and clears its message's checksum.
struct CopyHeaders {
  struct Shared {};
  WireHeader header;
  RowTable<HeaderRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const HeaderRow& row = table.row[item];
    team.once([&] {
      *row.into = row.from ? *row.from : header;
      *row.sum = 0;
    });
  }
};

/// Copies the headers of row_of(m) for each message m, then adds up the messages' checksums.
template <class RowOf>
void put_headers(const Stream& stream, const WireHeader& header, size_t messages,
                 std::span<const ConstBytes> payloads, const RowOf& row_of) {
  parallel_rows(stream, CopyHeaders{header}, 1, [&](const auto& put) {
    for (size_t m = 0; m < messages; ++m) put(row_of(m), 1);
  });
  const size_t each = payloads.size() / messages;
  parallel_rows(stream, AddToChecksum{}, RangeRow::kChunk, [&](const auto& put) {
    for (size_t m = 0; m < messages; ++m) {
      int64_t position = 0;
      for (const ConstBytes& payload : payloads.subspan(m * each, each)) {
        const PayloadRow row{
            {0, payload.bytes / 4}, payload.data, payload.bytes, position, row_of(m).sum};
        put(row, std::max(row.chunks(), int64_t{1}));
        position += row.end + 2;
      }
    }
  });
}

}  // namespace

void seal(const Stream& stream, const WireHeader& header, std::span<std::byte* const> into,
          std::span<const ConstBytes> payloads) {
  put_headers(stream, header, into.size(), payloads, [&](size_t m) {
    auto* const at = reinterpret_cast<WireHeader*>(into[m]);
    return HeaderRow{0, nullptr, at, &at->checksum};
  });
}

void read_headers(const Stream& stream, std::span<const std::byte* const> from,
                  std::span<const ConstBytes> payloads, ReceivedHeader* into) {
  put_headers(stream, {}, from.size(), payloads, [&](size_t m) {
    return HeaderRow{0, reinterpret_cast<const WireHeader*>(from[m]), &into[m].header,
                     &into[m].checksum};
  });
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
