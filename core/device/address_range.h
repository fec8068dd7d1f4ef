// A range of addresses that gets its memory from the system as it grows. Its contents never move
// and stay contiguous. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/device/device.h"

namespace wisp {

class AddressRange {
 public:
  virtual ~AddressRange() = default;

  virtual std::byte* begin() const = 0;
  int64_t bytes() const { return bytes_; }
  /// grow() takes multiples of this many bytes.
  virtual int64_t granularity() const = 0;
  /// Adds memory at the end; host memory is zeroed. Returns false if none is left.
  virtual bool grow(int64_t bytes) = 0;

 protected:
  int64_t bytes_ = 0;
};

/// Reserves `capacity` bytes of addresses without memory. Returns null if the host has too few;
/// throws Error if a device's are refused.
std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity);

/// Bytes of addresses that this process may have (ulimit -v, which batch systems set). Empty if
/// there is no limit.
std::optional<int64_t> address_limit();

}  // namespace wisp
