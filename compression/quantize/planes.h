// Planes of packed codes: a plane holds one code of 1, 2, 4 or 8 bits per element, element 0 in the
// lowest bits of byte 0. Codes of other widths take several planes. A small team writes or reads
// one group of elements at a time.
#pragma once

#include <cstring>
#include <type_traits>

#include "core/loops/parallel_small_teams.h"

namespace wisp {

/// `Byte` is const for a plane that is only read.
template <int kWidth, class Byte = std::byte>
struct Plane {
  static_assert(kWidth == 1 || kWidth == 2 || kWidth == 4 || kWidth == 8);
  static constexpr int64_t kGroup = 64;  // elements per call
  static constexpr int64_t kGroupBytes = kGroup * kWidth / 8;

  Byte* data = nullptr;
  int64_t numel = 0;

  WISP_HD static constexpr int64_t bytes(int64_t numel) { return (numel * kWidth + 7) / 8; }
  WISP_HD static constexpr int64_t groups(int64_t numel) { return (numel + kGroup - 1) / kGroup; }
  /// Number of elements of this group.
  WISP_HD static int64_t size_of(int64_t group, int64_t numel) {
    const int64_t left = numel - group * kGroup;
    return left < kGroup ? left : kGroup;
  }

  /// Packs code[0 … kGroup). Codes behind the last element must be 0.
  template <class Team>
  WISP_HD void store(const Team& team, int64_t group, const uint8_t* code) const {
    pack(team, group, [&](int64_t b) { return word_of(code, b); });
  }
  /// Packs the bits that team.write_bits(…, read, bit, then) gives. Only for a plane of 1 bit, and
  /// a whole group.
  template <class Team, class Read, class Bit, class Then>
  WISP_HD void store_bits(const Team& team, int64_t group, const Read& read, const Bit& bit,
                          const Then& then) const {
    static_assert(kWidth == 1 && kGroup == 64);
    team.write_bits(data + group * kGroupBytes, read, bit, then);
  }
  /// Packs kWidth bits of each code, from bit `shift` on, for codes with more bits than the plane.
  template <class Team>
  WISP_HD void store_part(const Team& team, int64_t group, const uint8_t* code, int shift) const {
    pack(team, group,
         [&](int64_t b) { return static_cast<Word>(word_of(code, b) >> shift & kEach); });
  }

  /// Unpacks into bits `shift` and up of code[0 … kGroup); lower bits stay. Codes behind the last
  /// element are 0 or arbitrary.
  template <class Team>
  WISP_HD void load(const Team& team, int64_t group, uint8_t* code, int shift = 0) const {
    const auto* in = reinterpret_cast<const uint8_t*>(data) + group * kGroupBytes;
    const auto spread = [&](int64_t b, uint8_t packed) {
      Word word = 0;
      for (int j = 0; j < kInByte; ++j)
        word = static_cast<Word>(word | static_cast<Word>(packed) << (j * (8 - kWidth)));
      word = static_cast<Word>(word & kEach);
      if (shift == 0) return word;
      return static_cast<Word>(word_of(code, b) | word << shift);
    };
    const int64_t size = size_of(group, numel);
    if (size == kGroup) {
      team.template write<kGroupBytes>(code, [&](int64_t b) { return spread(b, in[b]); });
    } else {
      uint8_t packed[kGroupBytes];
      for (int64_t b = 0; b < kGroupBytes; ++b) packed[b] = b < bytes(size) ? in[b] : uint8_t{0};
      team.template write<kGroupBytes>(code, [&](int64_t b) { return spread(b, packed[b]); });
    }
  }

 private:
  // A word holds the codes of one byte, one byte each, so that loops over words are vectorised.
  static constexpr int kInByte = 8 / kWidth;
  using Word =
      std::conditional_t<kWidth == 8, uint8_t,
                         std::conditional_t<kWidth == 4, uint16_t,
                                            std::conditional_t<kWidth == 2, uint32_t, uint64_t>>>;
  static constexpr Word kEach = static_cast<Word>(0x0101010101010101u * ((1u << kWidth) - 1u));

  WISP_HD static Word word_of(const uint8_t* code, int64_t b) {
    Word word;
    memcpy(&word, code + b * kInByte, sizeof word);
    return word;
  }
  template <class Team, class Words>
  WISP_HD void pack(const Team& team, int64_t group, const Words& words) const {
    const auto packed = [&](int64_t b) {
      const Word word = words(b);
      uint64_t joined = 0;
      for (int j = 0; j < kInByte; ++j) joined |= word >> (j * (8 - kWidth));
      return static_cast<uint8_t>(joined);
    };
    auto* out = reinterpret_cast<uint8_t*>(data) + group * kGroupBytes;
    const int64_t size = size_of(group, numel);
    if (size == kGroup) {
      team.template write<kGroupBytes>(out, packed);
    } else {
      team.each(bytes(size), [&](int64_t b) { out[b] = packed(b); });
    }
  }
};

// Codes of any width up to 8: the binary digits of the width give planes of 8, 4, 2 or 1 bits. The
// planes lie one behind the other, the widest first, with the lowest bits.

/// Bytes of all planes for codes of this width.
inline int64_t planes_bytes(int64_t numel, int width) {
  int64_t bytes = 0;
  for (int bits = 8; bits > 0; bits /= 2)
    if (width & bits) bytes += (numel * bits + 7) / 8;
  return bytes;
}

/// Writes all planes of a group. One kernel serves all widths as fast as one for each.
struct PlanesWriter {
  std::byte* data = nullptr;
  int64_t numel = 0;
  int width = 8;

  /// Same interface as Plane::store.
  template <class Team>
  WISP_HD void store(const Team& team, int64_t group, const uint8_t* code) const {
    std::byte* at = data;
    int shift = 0;
    store_plane<8>(team, group, code, at, shift);
    store_plane<4>(team, group, code, at, shift);
    store_plane<2>(team, group, code, at, shift);
    store_plane<1>(team, group, code, at, shift);
  }

 private:
  template <int kBits, class Team>
  WISP_HD void store_plane(const Team& team, int64_t group, const uint8_t* code, std::byte*& at,
                           int& shift) const {
    if (width == kBits) return Plane<kBits>{at, numel}.store(team, group, code);
    if (!(width & kBits)) return;
    Plane<kBits>{at, numel}.store_part(team, group, code, shift);
    at += Plane<kBits>::bytes(numel);
    shift += kBits;
  }
};

/// Reads all planes of a group. Each width has a kernel, because one for all took up to 1.9 times
/// as long.
template <int kWidth>
struct PlanesReader {
  static_assert(1 <= kWidth && kWidth <= 8);
  static constexpr int kFirst = kWidth == 8 ? 8 : kWidth >= 4 ? 4 : kWidth >= 2 ? 2 : 1;
  using First = Plane<kFirst, const std::byte>;

  const std::byte* data = nullptr;
  int64_t numel = 0;

  /// Same interface as Plane::load.
  template <class Team>
  WISP_HD void load(const Team& team, int64_t group, uint8_t* code, int shift = 0) const {
    First{data, numel}.load(team, group, code, shift);
    if constexpr (kWidth > kFirst)
      PlanesReader<kWidth - kFirst>{data + First::bytes(numel), numel}.load(team, group, code,
                                                                            shift + kFirst);
  }
};

}  // namespace wisp
