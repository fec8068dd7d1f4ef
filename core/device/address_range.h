// A range of addresses whose memory is asked of the system as it grows: what lies in it stays where
// it is, in one piece. One thread at a time.
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
  /// What it grows by is a multiple of this.
  virtual int64_t granularity() const = 0;
  /// Adds memory at the end; the host's is zeroed. False if there is none left.
  virtual bool grow(int64_t bytes) = 0;

 protected:
  int64_t bytes_ = 0;
};

/// Reserves `capacity` bytes of addresses of a device, no memory. Null if the host has none left;
/// throws Error if a device's are refused.
std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity);

/// Bytes of addresses that this process may have (ulimit -v, which batch systems set); nothing if
/// there is no limit.
std::optional<int64_t> address_limit();

}  // namespace wisp
