// A range of addresses whose memory is asked of the system as it grows: what lies in it stays where
// it is, in one piece. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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

/// Reserves `capacity` bytes of addresses of a device, no memory. Throws Error if the system
/// refuses.
std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity);

}  // namespace wisp
