#include "distributed/agreement.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace wisp {
namespace {

// Most bytes of an error, of a line about a name, and of a value. The error that ends all ranks
// travels to them in a small message.
constexpr size_t kLongest = 800, kLongestLine = 240, kLongestValue = 48;

/// Names and values, each followed by a zero byte; they contain none.
std::string packed(std::span<const NamedValue> values) {
  std::string text;
  for (const NamedValue& value : values) {
    for (const std::string& part : {value.name, value.value}) text.append(part).push_back('\0');
  }
  return text;
}

std::vector<NamedValue> unpacked(const std::string& text) {
  std::vector<NamedValue> values;
  for (size_t at = 0; at < text.size();) {
    NamedValue& value = values.emplace_back();
    for (std::string* part : {&value.name, &value.value}) {
      *part = text.c_str() + at;
      at += part->size() + 1;
    }
  }
  return values;
}

/// The part of a long value around its byte `at`.
std::string shortened(const std::string& value, size_t at) {
  if (value.size() <= kLongestValue) return value;
  const size_t half = kLongestValue / 2;
  const size_t begin = std::min(at > half ? at - half : 0, value.size() - kLongestValue);
  return concat(begin > 0 ? "..." : "", value.substr(begin, kLongestValue),
                begin + kLongestValue < value.size() ? "..." : "");
}

/// The ranks as "rank 1" or "ranks 0, 2-3", in order.
std::string listed(const std::vector<size_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += concat(text.empty() ? "" : ", ", ranks[i]);
    if (end > i + 1) text += concat("-", ranks[end - 1]);
    i = end;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

using Value = std::optional<std::string>;  // empty: the rank has no value of this name

Value find(const std::vector<NamedValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &NamedValue::name);
  return found == values.end() ? Value() : found->value;
}

/// The number of leading bytes that all values share.
size_t same_bytes(const std::vector<Value>& values) {
  Value same;
  for (const Value& value : values) {
    if (!same) same = value;
    if (value) same->erase(std::ranges::mismatch(*same, *value).in1, same->end());
  }
  return same ? same->size() : 0;
}

/// The values and their ranks, as "ranks 0, 2-3 have 0.05, rank 1 has 0.5"; `values` is by rank.
std::string who_has_what(const std::vector<Value>& values) {
  std::string text;
  std::vector<Value> told;
  const size_t differ_at = same_bytes(values);
  for (const Value& value : values) {
    if (std::find(told.begin(), told.end(), value) != told.end()) continue;
    told.push_back(value);
    std::vector<size_t> ranks;
    for (size_t rank = 0; rank < values.size(); ++rank) {
      if (values[rank] == value) ranks.push_back(rank);
    }
    text += concat(text.empty() ? "" : ", ", listed(ranks), ranks.size() == 1 ? " has " : " have ",
                   value ? shortened(*value, differ_at) : "none");
  }
  return text;
}

/// Hash and size of a rank's text. Ranks exchange them first, and the texts only if these differ.
struct Digest {
  uint64_t hash = 0;
  int64_t bytes = 0;

  bool operator==(const Digest&) const = default;
};

/// The texts of all ranks, by rank. Collective.
std::vector<std::string> gather(Communicator& communicator, const std::string& own,
                                std::span<const Digest> digests) {
  std::vector<std::string> texts;
  for (const Digest& digest : digests) texts.emplace_back(static_cast<size_t>(digest.bytes), '\0');
  std::vector<Bytes> in;
  for (std::string& text : texts)
    in.push_back({reinterpret_cast<std::byte*>(text.data()), static_cast<int64_t>(text.size())});
  const ConstBytes out{reinterpret_cast<const std::byte*>(own.data()),
                       static_cast<int64_t>(own.size())};
  communicator.all_gather({&out, 1}, in)->wait();
  return texts;
}

/// Every name that some rank has, in order of first appearance.
std::vector<std::string> names_of(std::span<const std::vector<NamedValue>> ranks) {
  std::vector<std::string> names;
  for (const std::vector<NamedValue>& values : ranks) {
    for (const NamedValue& value : values) {
      if (std::ranges::count(names, value.name) == 0) names.push_back(value.name);
    }
  }
  return names;
}

}  // namespace

std::string disagreement(std::span<const std::vector<NamedValue>> ranks) {
  std::string lines;
  size_t left = 0;
  for (const std::string& name : names_of(ranks)) {
    std::vector<Value> values;
    for (const std::vector<NamedValue>& of_rank : ranks) values.push_back(find(of_rank, name));
    if (std::ranges::count(values, values.front()) == std::ssize(values)) continue;
    std::string line = concat("\n  ", name, ": ", who_has_what(values));
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + "...";
    if (left > 0 || lines.size() + line.size() > kLongest) {
      ++left;
    } else {
      lines += line;
    }
  }
  if (left > 0) lines += concat("\n  and ", left, " more");
  return lines;
}

void check_agreement(Communicator& communicator, std::span<const NamedValue> values) {
  const std::string own = packed(values);
  const Digest digest{hash_text(own), static_cast<int64_t>(own.size())};
  std::vector<Digest> digests(static_cast<size_t>(communicator.size()));
  std::vector<Bytes> in;
  for (Digest& of_rank : digests)
    in.push_back({reinterpret_cast<std::byte*>(&of_rank), sizeof of_rank});
  const ConstBytes out{reinterpret_cast<const std::byte*>(&digest), sizeof digest};
  communicator.all_gather({&out, 1}, in)->wait();
  if (std::ranges::count(digests, digest) == std::ssize(digests)) return;

  std::vector<std::vector<NamedValue>> ranks;
  for (const std::string& text : gather(communicator, own, digests))
    ranks.push_back(unpacked(text));
  if (communicator.rank() == 0) {
    communicator.abort(concat("the ranks of this run differ in", disagreement(ranks),
                              "\nthey would train apart: give all of them the same"));
  }
  communicator.barrier()->wait();  // ends when rank 0 has reported
}

}  // namespace wisp
