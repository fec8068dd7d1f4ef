// Counter-based random numbers. A value is a pure function of (seed, step, id, index), so there is
// no generator state to save and no order to keep. `id` is a global sample, a segment or a purpose.
// The rank joins the key only where ranks must differ. Any thread. Source: Salmon et al. 2011,
// "Parallel random numbers: as easy as 1, 2, 3", Philox4x32-10.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace wisp {

struct Philox {
  struct Block {
    uint32_t word[4];
  };

  uint32_t key[2];
  uint32_t high[2];  // upper half of the counter

  WISP_HD Philox(uint64_t seed, uint64_t step, uint64_t id)
      : key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        high{static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32)} {
    // a block of its own mixes the step into the key, so that all 64 bits of seed, step and id
    // count
    const Block mixed =
        rounds({{static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), 0x57495350u, 0}});
    key[0] = mixed.word[0];
    key[1] = mixed.word[1];
  }

  /// Four independent words for `index`.
  WISP_HD Block block(uint64_t index) const {
    return rounds(
        {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), high[0], high[1]}});
  }
  WISP_HD uint32_t bits(uint64_t index) const { return block(index).word[0]; }
  /// Uniform in [0, 1), 24 bits.
  WISP_HD float uniform(uint64_t index) const {
    return static_cast<float>(bits(index) >> 8) * 5.9604644775390625e-8f;
  }
  /// Uniform in [0, bound) for bound < 2^32, by multiply-shift of a 32-bit word. The bias is below
  /// bound / 2^32.
  WISP_HD uint32_t below(uint64_t index, uint32_t bound) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(bits(index)) * bound >> 32);
  }
  /// Uniform in [0, bound) for bound <= 2^32, from 64 bits. The bias is below bound / 2^64.
  WISP_HD int64_t below64(uint64_t index, int64_t bound) const {
    const Block words = block(index);
    const auto wide = static_cast<uint64_t>(bound);
    return static_cast<int64_t>((words.word[0] * wide + (words.word[1] * wide >> 32)) >> 32);
  }
  /// Mean 0, variance 1, within ±4.9. The sum of eight uniforms has the same bits on every device.
  WISP_HD float nearly_normal(uint64_t index) const {
    const Block words = block(index);
    uint32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += (words.word[i] & 0xffffu) + (words.word[i] >> 16);
    return (static_cast<float>(sum) - 262140.0f) * 1.8688e-5f;  // sqrt(12 / 8) / 2^16
  }

 private:
  WISP_HD Block rounds(Block counter) const {
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = static_cast<uint64_t>(0xd2511f53u) * counter.word[0];
      const uint64_t b = static_cast<uint64_t>(0xcd9e8d57u) * counter.word[2];
      counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ k0, static_cast<uint32_t>(b),
                  static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ k1, static_cast<uint32_t>(a)}};
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    return counter;
  }
};

/// The key of a sample's random draws. Copies of a sample in one epoch need different numbers.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample = 0;

  WISP_HD Philox philox() const {
    return {seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)};
  }
};

/// Random numbers for loops that run at memory speed (stochastic rounding). Two words of Philox are
/// the key of a mixer of 32-bit indices, three multiplications that vectorise. For each index the
/// numbers are uniform over the keys. Numbers of one key are independent enough for rounding, not
/// for more. Source of the mixer's constants: Wellons 2018, "Prospecting for hash functions".
struct Dither {
  uint32_t key[2];

  Dither() = default;
  Dither(uint64_t seed, uint64_t step, uint64_t id) {
    const Philox::Block block = Philox(seed, step, id).block(0);
    key[0] = block.word[0];
    key[1] = block.word[1];
  }
  WISP_HD uint32_t bits(int64_t index) const {
    uint32_t x = static_cast<uint32_t>(index) * 0x9e3779b9u + key[0];
    x = (x ^ (x >> 16)) * 0x21f0aaadu;
    x = (x ^ (x >> 15)) + key[1];
    x *= 0xd35a2d97u;
    return x ^ (x >> 15);
  }
  /// bits() at a quarter of the cost. In each block of 64 indices, i, i + 16, i + 32 and i + 48
  /// share a word, rotated by one more byte each. The highest bytes of two of them are independent.
  WISP_HD uint32_t shared_bits(int64_t index) const {
    return turned(bits(index & ~int64_t{48}), static_cast<int>(index >> 4 & 3));
  }
  WISP_HD static uint32_t turned(uint32_t word, int bytes) {
    return word << (8 * bytes & 31) | word >> ((32 - 8 * bytes) & 31);
  }
  /// Uniform in [0, 1), 24 bits.
  WISP_HD float uniform(int64_t index) const {
    return static_cast<float>(static_cast<int32_t>(bits(index) >> 8)) * 5.9604644775390625e-8f;
  }
};

/// Standard normal deviate (Box-Muller) for `index`. Host only: transcendental functions differ
/// between devices.
double normal(const Philox& philox, uint64_t index);

}  // namespace wisp
