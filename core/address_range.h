// A range of addresses whose memory is asked of the system as it grows: what lies in it stays where
// it is, in one piece. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wisp {

class AddressRange {
 public:
  /// Reserves `capacity` bytes of addresses, no memory. Throws Error if the system refuses.
  explicit AddressRange(int64_t capacity);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  std::byte* begin() const { return begin_; }
  int64_t bytes() const { return bytes_; }
  /// Adds `bytes`, a multiple of 1 MiB, of zeroed memory at the end. False if there is none left.
  bool grow(int64_t bytes);

 private:
  std::byte* begin_ = nullptr;
  int64_t capacity_;
  int64_t bytes_ = 0;
};

}  // namespace wisp
