// A position in scratch memory that advances as parts are taken. The same sequence of take() calls
// gives the parts their addresses or, if the cursor begins at null, only measures their total size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wisp {

/// Parts are contiguous, each aligned to 8 bytes. A value; any thread.
class Cursor {
 public:
  /// `memory` is 8-byte aligned. If it is null, parts are null and only measured.
  explicit Cursor(std::byte* memory) : memory_(memory) {}

  /// Takes `count` elements of T.
  template <class T>
  T* take(int64_t count) {
    static_assert(alignof(T) <= 8);
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 7) / 8 * 8;
    return part;
  }
  /// Takes the last part, of bytes() bytes. Only a measuring cursor calls bytes(), because nothing
  /// follows the last part.
  template <class Bytes>
  std::byte* take_last(const Bytes& bytes) {
    return take<std::byte>(memory_ ? 0 : bytes());
  }
  /// Total size of the parts taken so far.
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  int64_t bytes_ = 0;
};

/// Lays out a Layout in `memory`. The constructor Layout(cursor, of…) takes its parts.
template <class Layout, class... Of>
Layout lay_out(std::byte* memory, const Of&... of) {
  Cursor cursor(memory);
  return Layout(cursor, of...);
}
/// Bytes that lay_out() of the same layout needs.
template <class Layout, class... Of>
int64_t layout_bytes(const Of&... of) {
  Cursor cursor(nullptr);
  static_cast<void>(Layout(cursor, of...));
  return cursor.bytes();
}

}  // namespace wisp
