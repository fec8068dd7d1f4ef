// Small codes packed into bits: a plane holds one code of 1, 2, 4 or 8 bits per element, element 0
// in the lowest bits of byte 0. Codes of other widths take several planes. Kernels write and read a
// group of elements at a time.
#pragma once

#include "core/dtype.h"

namespace wisp {

template <int kWidth>
struct Plane {
  static_assert(kWidth == 1 || kWidth == 2 || kWidth == 4 || kWidth == 8);
  static constexpr int64_t kGroup = 64;  // elements a call handles
  static constexpr int64_t kGroupBytes = kGroup * kWidth / 8;

  std::byte* data = nullptr;
  int64_t numel = 0;

  static constexpr int64_t bytes(int64_t numel) { return (numel * kWidth + 7) / 8; }
  static constexpr int64_t groups(int64_t numel) { return (numel + kGroup - 1) / kGroup; }
  /// Elements of this group.
  WISP_HD static int64_t size_of(int64_t group, int64_t numel) {
    const int64_t left = numel - group * kGroup;
    return left < kGroup ? left : kGroup;
  }

  /// Packs code[0 … kGroup); codes behind the last element must be 0.
  WISP_HD void store(int64_t group, const uint8_t* code) const {
    constexpr int kEach = 8 / kWidth;  // codes in a byte
    uint8_t packed[kGroupBytes];
    if constexpr (kWidth == 1) {
      for (int half = 0; half < 2; ++half) {
        uint32_t word = 0;
        for (int j = 0; j < 32; ++j) word |= static_cast<uint32_t>(code[32 * half + j]) << j;
        for (int b = 0; b < 4; ++b) packed[4 * half + b] = static_cast<uint8_t>(word >> (8 * b));
      }
    } else {
      for (int64_t b = 0; b < kGroupBytes; ++b) {
        uint32_t byte = 0;
        for (int j = 0; j < kEach; ++j)
          byte |= static_cast<uint32_t>(code[b * kEach + j]) << (j * kWidth);
        packed[b] = static_cast<uint8_t>(byte);
      }
    }
    auto* out = reinterpret_cast<uint8_t*>(data) + group * kGroupBytes;
    const int64_t size = size_of(group, numel);
    if (size == kGroup) {
      for (int64_t b = 0; b < kGroupBytes; ++b) out[b] = packed[b];
    } else {
      for (int64_t b = 0; b < bytes(size); ++b) out[b] = packed[b];
    }
  }

  /// The bits of elements 32 · half … of a whole group: faster than load() where a code is a bit.
  WISP_HD uint32_t word(int64_t group, int half) const {
    static_assert(kWidth == 1);
    const auto* in = reinterpret_cast<const uint8_t*>(data) + group * kGroupBytes + 4 * half;
    return static_cast<uint32_t>(in[0]) | static_cast<uint32_t>(in[1]) << 8 |
           static_cast<uint32_t>(in[2]) << 16 | static_cast<uint32_t>(in[3]) << 24;
  }
  /// Unpacks into code[0 … kGroup); what is behind the last element is 0 or a sender's rubbish.
  WISP_HD void load(int64_t group, uint8_t* code) const {
    constexpr int kEach = 8 / kWidth;
    constexpr uint32_t kMask = (1u << kWidth) - 1u;
    const auto* in = reinterpret_cast<const uint8_t*>(data) + group * kGroupBytes;
    const int64_t size = size_of(group, numel);
    uint8_t packed[kGroupBytes];
    if (size == kGroup) {
      for (int64_t b = 0; b < kGroupBytes; ++b) packed[b] = in[b];
    } else {
      for (int64_t b = 0; b < kGroupBytes; ++b) packed[b] = b < bytes(size) ? in[b] : uint8_t{0};
    }
    for (int64_t b = 0; b < kGroupBytes; ++b)
      for (int j = 0; j < kEach; ++j)
        code[b * kEach + j] = static_cast<uint8_t>(packed[b] >> (j * kWidth) & kMask);
  }
};

}  // namespace wisp
