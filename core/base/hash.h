// A stable 64-bit hash of text and numbers (FNV-1a), chained through `seed`. Ranks compare such
// hashes; state and random numbers have them as keys. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace wisp {

inline uint64_t hash_number(uint64_t number, uint64_t seed) {
  for (int byte = 0; byte < 8; ++byte)
    seed = (seed ^ ((number >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  return seed;
}

constexpr uint64_t kHashBasis = 0xcbf29ce484222325u;

/// The hash of the characters alone: chained, "a" and "bc" have that of "ab" and "c".
inline uint64_t hash_characters(const std::string& text, uint64_t seed = kHashBasis) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

inline uint64_t hash_text(const std::string& text, uint64_t seed = kHashBasis) {
  return hash_number(text.size(), hash_characters(text, seed));
}

/// The hash as sixteen hexadecimal digits.
inline std::string hash_digits(uint64_t hash) {
  std::string text(16, '0');
  for (size_t digit = text.size(); digit-- > 0; hash >>= 4)
    text[digit] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace wisp
