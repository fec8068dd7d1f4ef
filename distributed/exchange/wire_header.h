// What stands in front of a slot's payloads to one destination: 16 bytes that say what follows, and
// a checksum of it (docs/wire_format.md). Written and checked in stream order.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "core/stream.h"
#include "core/tensor.h"
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

/// *sum = the checksum of `payloads` (each 4-byte aligned), their sizes included; `scratch` is a
/// word. The sum, modulo 2^32, of a bijective mix of each word with its position: a change within
/// one word is always seen, any other escapes with probability 2^-32. It finds accidents, not
/// forgery.
void checksum(const Stream& stream, std::span<const ConstBytes> payloads, uint32_t* sum,
              uint32_t* scratch);

/// Writes `header`, with the checksum of `payloads`, to `into`.
void seal(const Stream& stream, const WireHeader& header, std::span<const ConstBytes> payloads,
          std::byte* into, uint32_t* scratch);

/// The header at `from` becomes the words of `into`.
void read_header(const Stream& stream, const std::byte* from, const Tensor& into);

/// Why `got` is not `expected`; empty if it is.
std::string complaint(const WireHeader& got, const WireHeader& expected);

}  // namespace wisp
