// Small codes packed into bits: a plane holds one code of 1, 2, 4 or 8 bits per element, element 0
// in the lowest bits of byte 0. Codes of other widths take several planes. Kernels write and read a
// group of elements at a time.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/dtype.h"

namespace wisp {

/// `Byte` is const for a plane that is only read.
template <int kWidth, class Byte = std::byte>
struct Plane {
  static_assert(kWidth == 1 || kWidth == 2 || kWidth == 4 || kWidth == 8);
  static constexpr int64_t kGroup = 64;  // elements a call handles
  static constexpr int64_t kGroupBytes = kGroup * kWidth / 8;

  Byte* data = nullptr;
  int64_t numel = 0;

  WISP_HD static constexpr int64_t bytes(int64_t numel) { return (numel * kWidth + 7) / 8; }
  WISP_HD static constexpr int64_t groups(int64_t numel) { return (numel + kGroup - 1) / kGroup; }
  /// Elements of this group.
  WISP_HD static int64_t size_of(int64_t group, int64_t numel) {
    const int64_t left = numel - group * kGroup;
    return left < kGroup ? left : kGroup;
  }

  /// Packs code[0 … kGroup); codes behind the last element must be 0.
  WISP_HD void store(int64_t group, const uint8_t* code) const {
    Word word[kGroupBytes];
    memcpy(word, code, sizeof word);
    uint8_t packed[kGroupBytes];
    for (int64_t b = 0; b < kGroupBytes; ++b) {
      uint64_t joined = 0;
      for (int j = 0; j < kInByte; ++j) joined |= word[b] >> (j * (8 - kWidth));
      packed[b] = static_cast<uint8_t>(joined);
    }
    auto* out = reinterpret_cast<uint8_t*>(data) + group * kGroupBytes;
    const int64_t size = size_of(group, numel);
    if (size == kGroup) {
      for (int64_t b = 0; b < kGroupBytes; ++b) out[b] = packed[b];
    } else {
      for (int64_t b = 0; b < bytes(size); ++b) out[b] = packed[b];
    }
  }

  /// Unpacks into code[0 … kGroup); what is behind the last element is 0 or a sender's rubbish.
  WISP_HD void load(int64_t group, uint8_t* code) const {
    const auto* in = reinterpret_cast<const uint8_t*>(data) + group * kGroupBytes;
    const int64_t size = size_of(group, numel);
    uint8_t packed[kGroupBytes];
    if (size == kGroup) {
      for (int64_t b = 0; b < kGroupBytes; ++b) packed[b] = in[b];
    } else {
      for (int64_t b = 0; b < kGroupBytes; ++b) packed[b] = b < bytes(size) ? in[b] : uint8_t{0};
    }
    Word word[kGroupBytes];
    for (int64_t b = 0; b < kGroupBytes; ++b) {
      Word spread = 0;
      for (int j = 0; j < kInByte; ++j)
        spread = static_cast<Word>(spread | static_cast<Word>(packed[b]) << (j * (8 - kWidth)));
      word[b] = static_cast<Word>(spread & kEach);
    }
    memcpy(code, word, sizeof word);
  }

 private:
  // The codes of a byte, a byte each: what a loop over words joins and spreads is vectorised.
  static constexpr int kInByte = 8 / kWidth;
  using Word =
      std::conditional_t<kWidth == 8, uint8_t,
                         std::conditional_t<kWidth == 4, uint16_t,
                                            std::conditional_t<kWidth == 2, uint32_t, uint64_t>>>;
  static constexpr Word kEach = static_cast<Word>(0x0101010101010101u * ((1u << kWidth) - 1u));
};

/// Codes of any width up to 8: planes of 8, 4, 2 and 1 bits one behind the other, the widest first,
/// with the lowest bits.
template <int kWidth, class Byte = std::byte>
struct Planes {
  static_assert(1 <= kWidth && kWidth <= 8);
  static constexpr int kFirst = kWidth == 8 ? 8 : kWidth >= 4 ? 4 : kWidth >= 2 ? 2 : 1;
  static constexpr int kRest = kWidth - kFirst;
  using First = Plane<kFirst, Byte>;

  Byte* data = nullptr;
  int64_t numel = 0;

  WISP_HD static constexpr int64_t bytes(int64_t numel) {
    if constexpr (kRest == 0) {
      return First::bytes(numel);
    } else {
      return First::bytes(numel) + Planes<kRest, Byte>::bytes(numel);
    }
  }
  /// As of a plane.
  WISP_HD void store(int64_t group, const uint8_t* code) const {
    if constexpr (kRest == 0) {
      First{data, numel}.store(group, code);
    } else {
      uint8_t part[First::kGroup];
      for (int64_t j = 0; j < First::kGroup; ++j)
        part[j] = static_cast<uint8_t>(code[j] & ((1u << kFirst) - 1u));
      First{data, numel}.store(group, part);
      for (int64_t j = 0; j < First::kGroup; ++j) part[j] = static_cast<uint8_t>(code[j] >> kFirst);
      rest().store(group, part);
    }
  }
  WISP_HD void load(int64_t group, uint8_t* code) const {
    First{data, numel}.load(group, code);
    if constexpr (kRest > 0) {
      uint8_t part[First::kGroup];
      rest().load(group, part);
      for (int64_t j = 0; j < First::kGroup; ++j)
        code[j] = static_cast<uint8_t>(code[j] | part[j] << kFirst);
    }
  }

 private:
  WISP_HD auto rest() const { return Planes<kRest, Byte>{data + First::bytes(numel), numel}; }
};

}  // namespace wisp
