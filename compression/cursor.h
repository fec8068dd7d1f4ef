// A place in scratch memory that moves on as parts are taken. Whoever takes the parts of a layout
// from it says with that where they lie and, begun at null, how many bytes they need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wisp {

/// Parts lie one behind the other, each at a multiple of 8 bytes. A value; any thread.
class Cursor {
 public:
  /// `memory` is 8-byte aligned; null: parts are null, and only measured.
  explicit Cursor(std::byte* memory) : memory_(memory) {}

  /// The next part: `count` of T.
  template <class T>
  T* take(int64_t count) {
    static_assert(alignof(T) <= 8);
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 7) / 8 * 8;
    return part;
  }
  /// The last part, of bytes(): asked while it is measured alone, as nothing lies behind it.
  template <class Bytes>
  std::byte* take_last(const Bytes& bytes) {
    return take<std::byte>(memory_ ? 0 : bytes());
  }
  /// Of the parts so far.
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* memory_;
  int64_t bytes_ = 0;
};

/// A layout, in `memory`: a type whose constructor takes its parts, Layout(cursor, of…).
template <class Layout, class... Of>
Layout lay_out(std::byte* memory, const Of&... of) {
  Cursor cursor(memory);
  return Layout(cursor, of...);
}
/// The bytes that it needs.
template <class Layout, class... Of>
int64_t layout_bytes(const Of&... of) {
  Cursor cursor(nullptr);
  static_cast<void>(Layout(cursor, of...));
  return cursor.bytes();
}

}  // namespace wisp
