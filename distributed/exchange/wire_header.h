// What stands in front of a slot's payloads to one destination: 16 bytes that say what follows, and
// a checksum of it (docs/wire_format.md). Written and checked in stream order.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "core/device/stream.h"
#include "distributed/communicator/communicator.h"

namespace wisp {

static_assert(std::endian::native == std::endian::little, "payloads are little-endian");

constexpr uint32_t kWireMark = 0x505357;  // "WSP"
constexpr uint32_t kWireVersion = 1;

struct WireHeader {
  uint32_t format = kWireMark | kWireVersion << 24;
  uint32_t step = 0;      // its low half
  uint32_t slot = 0;      // hash of bucket, round, units and sender
  uint32_t checksum = 0;  // of payloads and their sizes
};
constexpr int64_t kHeaderBytes = sizeof(WireHeader);

// In memory, payloads begin at multiples of 64 bytes, with as many in front of them for the header.
constexpr int64_t kFront = 64;
static_assert(kFront >= kHeaderBytes);
inline int64_t whole_fronts(int64_t bytes) { return (bytes + kFront - 1) / kFront * kFront; }

// A message has a header and the payloads behind it, each 4-byte aligned. The checksum is of all of
// them, their sizes included: the sum, modulo 2^32, of a bijective mix of each word with its
// position. A change within one word is always seen, any other escapes with probability 2^-32. It
// finds accidents, not forgery.

/// Writes `header`, with the checksum of the message's payloads, to each of `into`; `payloads` are
/// the first message's, then the second's…, equally many.
void seal(const Stream& stream, const WireHeader& header, std::span<std::byte* const> into,
          std::span<const ConstBytes> payloads);

struct ReceivedHeader {
  WireHeader header;
  uint32_t checksum;  // of the payloads that came with it
};

/// into[m] = what is said of the m-th message by its header, at from[m], and by its payloads.
void read_headers(const Stream& stream, std::span<const std::byte* const> from,
                  std::span<const ConstBytes> payloads, ReceivedHeader* into);

/// Why `got` is not `expected`; empty if it is.
std::string complaint(const WireHeader& got, const WireHeader& expected);

}  // namespace wisp
