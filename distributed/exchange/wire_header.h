// The header in front of a slot's payloads to one destination: 16 bytes with format, step, slot and
// a checksum (docs/wire_format.md). Written and checked in a stream's order. For the comm thread.
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
  uint32_t step = 0;      // low half of the step
  uint32_t slot = 0;      // hash of bucket, round, units and sender
  uint32_t checksum = 0;  // checksum of the payloads and their sizes
};
constexpr int64_t kHeaderBytes = sizeof(WireHeader);

// In memory, payloads begin at multiples of 64 bytes, behind 64 bytes of room for the header.
constexpr int64_t kFront = 64;
static_assert(kFront >= kHeaderBytes);
inline int64_t whole_fronts(int64_t bytes) { return (bytes + kFront - 1) / kFront * kFront; }

// A message is a header and the payloads behind it, each 4-byte aligned. The checksum covers all
// payloads and their sizes: the sum, modulo 2^32, of a bijective mix of each word with its
// position. It finds every change within one word, and misses any other change with probability
// 2^-32. It finds accidents, not forgery.

/// Writes `header`, with the checksum of the message's payloads, to each of `into`. `payloads` has
/// the payloads of the first message, then of the second, …; all messages have equally many.
void seal(const Stream& stream, const WireHeader& header, std::span<std::byte* const> into,
          std::span<const ConstBytes> payloads);

struct ReceivedHeader {
  WireHeader header;
  uint32_t checksum;  // checksum of the received payloads
};

/// into[m] = the header of message m, at from[m], and the checksum of its payloads.
void read_headers(const Stream& stream, std::span<const std::byte* const> from,
                  std::span<const ConstBytes> payloads, ReceivedHeader* into);

/// The difference between `got` and `expected` in words; empty if they are equal.
std::string complaint(const WireHeader& got, const WireHeader& expected);

}  // namespace wisp
