#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/random.h"

namespace wisp {
namespace {

constexpr std::array<int64_t, 12> kNumbers = {
    0, 1, -1, 127, 255, 65'535, 65'536, 1LL << 31, 1LL << 32, 1LL << 60, INT64_MAX, INT64_MIN};
constexpr size_t kLongest = 64 << 10;  // bytes of a repeated piece
constexpr const char* kPieces[] = {"[",       "{",  "{\"a\":", "a.", "\"",   "\n", "1e999", "-0",
                                   "\\u0000", "[[", "=",       ",",  "\xff", "#",  "nan",   "'''"};

/// Draws one number after the other.
class Draw {
 public:
  explicit Draw(uint64_t number) : random_(1, number, 0) {}
  /// A number below `bound`, or 0 if `bound` is 0.
  size_t below(size_t bound) { return random_.below(next_++, static_cast<uint32_t>(bound)); }
  uint32_t bits() { return random_.bits(next_++); }

 private:
  Philox random_;
  uint64_t next_ = 0;
};

/// Overwrites bytes at a drawn place with a number of 1, 2, 4 or 8 bytes.
void put_number(std::string& text, Draw& draw) {
  const size_t bytes = size_t{1} << draw.below(4);
  if (text.size() < bytes) return;
  const int64_t number = kNumbers[draw.below(kNumbers.size())];
  std::memcpy(text.data() + draw.below(text.size() - bytes + 1), &number, bytes);
}

/// A number inside up to ten thousand brackets.
std::string nest(Draw& draw) {
  const size_t depth = draw.below(10'001);
  const bool lists = draw.below(2) == 0;
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += lists ? "[" : "{\"a\":";
  return text + "0" + std::string(depth, lists ? ']' : '}');
}

/// Replaces the first decimal number after a drawn place.
void put_decimal(std::string& text, Draw& draw) {
  constexpr const char* kDigits = "0123456789";
  const size_t begin = text.find_first_of(kDigits, draw.below(text.size()));
  if (begin == text.npos) return;
  const size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
  const std::string number = std::to_string(kNumbers[draw.below(kNumbers.size())]);
  text.replace(begin, end - begin, draw.below(4) == 0 ? nest(draw) : number);
}

void insert_piece(std::string& text, Draw& draw) {
  const std::string piece = kPieces[draw.below(std::size(kPieces))];
  const size_t times = size_t{1} << draw.below(16);
  std::string inserted;
  for (size_t i = 0; i < times && inserted.size() < kLongest; ++i) inserted += piece;
  text.insert(draw.below(text.size() + 1), inserted);
}

/// A drawn range of the text.
std::string part_of(const std::string& text, Draw& draw) {
  const size_t begin = draw.below(text.size() + 1);
  return text.substr(begin, draw.below(text.size() - begin + 1));
}

void change(std::string& text, std::span<const std::string> seeds, Draw& draw) {
  switch (draw.below(8)) {
    case 0:
      if (!text.empty()) text[draw.below(text.size())] ^= static_cast<char>(1u << draw.below(8));
      break;
    case 1:
      if (!text.empty()) text[draw.below(text.size())] = static_cast<char>(draw.bits());
      break;
    case 2:
      put_number(text, draw);
      break;
    case 3:
      put_decimal(text, draw);
      break;
    case 4:
      text.resize(draw.below(text.size() + 1));
      break;
    case 5:
      text.erase(draw.below(text.size() + 1), draw.below(text.size() + 1));
      break;
    case 6:
      text.insert(draw.below(text.size() + 1), part_of(seeds[draw.below(seeds.size())], draw));
      break;
    default:
      insert_piece(text, draw);
      break;
  }
}

}  // namespace

std::string mutate(std::span<const std::string> seeds, uint64_t number) {
  Draw draw(number);
  std::string text = seeds[draw.below(seeds.size())];
  const size_t changes = 1 + draw.below(4);
  for (size_t i = 0; i < changes; ++i) change(text, seeds, draw);
  return text;
}

}  // namespace wisp
