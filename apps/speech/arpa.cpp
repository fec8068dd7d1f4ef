#include "apps/speech/arpa.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/number.h"
#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

constexpr int64_t kLongestLine = 64 << 10;
constexpr std::string_view kMark = "\xef\xbb\xbf";  // byte order mark of some editors

std::string shown(std::string_view text) {
  constexpr size_t kMost = 60;
  return concat("'", text.substr(0, kMost), text.size() > kMost ? "…'" : "'");
}

class ArpaReader {
 public:
  explicit ArpaReader(const std::string& path)
      : path_(path), lines_(path, kLongestLine, Input::file_or_pipe) {}

  NgramModel read() {
    read_counts();
    read_words();
    NgramTrie ngrams(std::ssize(words_));
    for (size_t length = 2; length <= counts_.size(); ++length) read_ngrams(length, ngrams);
    if (line_ != "\\end\\") fail(shown(line_), "\\end\\ behind the last section");
    for (const char* needed : {NgramModel::kBegin, NgramModel::kEnd})
      if (!numbers_.contains(needed)) fail(concat("no 1-gram ", needed), "one");
    return NgramModel(Vocabulary(std::move(words_)), std::move(ngrams), std::move(weights_));
  }

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw Error(concat(path_, ":", line_number_, ": ", found, ", expected ", expected));
  }

  /// Reads the next line that is not blank, and splits it into words.
  bool next_line() {
    do {
      const std::optional<std::string_view> line = lines_.next();
      line_number_ = lines_.number() + (line ? 0 : 1);
      if (!line) return false;
      line_ = *line;
      if (line_.find('\0') != line_.npos) fail("a byte of zero", "text");
      if (line_number_ == 1 && line_.starts_with(kMark)) line_.remove_prefix(kMark.size());
      parts_ = split_words(line_);
    } while (parts_.empty());
    line_ = {parts_.front().begin(), parts_.back().end()};
    return true;
  }
  void need_line(const std::string& expected) {
    if (!next_line()) fail("the file's end", expected);
  }

  /// Reads the counts, up to the title of the first section.
  void read_counts() {
    do need_line("a line \\data\\");
    while (line_ != "\\data\\");
    for (need_line("ngram 1=COUNT"); parts_[0] == "ngram"; need_line("\\1-grams:")) {
      const size_t behind = parts_[0].size(), equals = line_.find('=');
      const bool cut = equals != line_.npos;
      const auto length = only_number(line_.substr(behind, cut ? equals - behind : 0));
      const auto count = only_number(cut ? line_.substr(equals + 1) : "");
      if (length != std::ssize(counts_) + 1 || count.value_or(-1) < 0)
        fail(shown(line_), concat("ngram ", counts_.size() + 1, "=COUNT"));
      counts_.push_back(*count);
    }
    if (counts_.empty()) fail(shown(line_), "ngram 1=COUNT behind \\data\\");
  }

  void read_words() {
    read_section(1, [&](const NgramWeights& weights) {
      const std::string word(NgramModel::known_as(parts_[1]));
      if (!numbers_.emplace(word, static_cast<int32_t>(words_.size())).second)
        fail(concat("a second 1-gram ", shown(word)), "one");
      words_.push_back(word);
      weights_.push_back(weights);
    });
    if (numbers_.emplace(NgramModel::kUnknown, static_cast<int32_t>(words_.size())).second) {
      words_.emplace_back(NgramModel::kUnknown);
      weights_.push_back({.probability = NgramModel::kNever});
    }
  }

  void read_ngrams(size_t length, NgramTrie& ngrams) {
    read_section(length, [&](const NgramWeights& weights) {
      int32_t context = NgramTrie::kEmpty, word = NgramTrie::kNone;
      for (size_t i = 1; i <= length; ++i) {
        const auto found = numbers_.find(std::string(NgramModel::known_as(parts_[i])));
        if (found == numbers_.end())
          fail(concat("the word ", shown(parts_[i])), "words that are among the 1-grams");
        word = found->second;
        if (i == length) break;
        context = ngrams.find(context, word);
        if (context == NgramTrie::kNone)
          fail(concat("the ", length, "-gram ", shown(line_)),
               concat("its first words among the ", length - 1, "-grams"));
      }
      if (ngrams.insert(context, word) != std::ssize(weights_))
        fail(concat("a second ", length, "-gram ", shown(line_)), "one");
      weights_.push_back(weights);
    });
  }

  /// Calls add(weights) for each n-gram of a section, with its words in parts_ after the
  /// probability. Begins at the section's title and ends at the next one.
  template <class Add>
  void read_section(size_t length, const Add& add) {
    const std::string title = concat("\\", length, "-grams:");
    if (line_ != title) fail(shown(line_), title);
    const int64_t count = counts_[length - 1];
    const std::string all = concat(count, " ", length, "-grams");
    int64_t read = 0;
    for (need_line(all); line_[0] != '\\'; need_line(++read < count ? all : "\\end\\")) {
      if (read == count) fail(shown(line_), concat("a section's title behind ", all));
      if (parts_.size() != length + 1 && parts_.size() != length + 2)
        fail(shown(line_), concat("log10 of a probability, ", length, " word",
                                  length == 1 ? "" : "s", " and, at most, a back-off weight"));
      NgramWeights weights{.probability = weight(parts_[0])};
      if (weights.probability > 0.0f) fail(shown(parts_[0]), "log10 of a probability, 0 at most");
      if (parts_.size() == length + 2) weights.back_off = weight(parts_[length + 1]);
      if (length == counts_.size() && length > 1 && weights.back_off != 0.0f)
        fail("a back-off weight for an n-gram of the highest order", "none");
      add(weights);
    }
    if (read != count) fail(concat(read, " ", length, "-grams"), all);
  }

  static std::optional<int64_t> only_number(std::string_view text) {
    const std::vector<std::string_view> parts = split_words(text);
    return parts.size() == 1 ? number_in<int64_t>(parts[0]) : std::nullopt;
  }
  /// Parses a weight. Some programs write -inf for log10 of 0, or a sign before all numbers.
  float weight(std::string_view text) const {
    const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
    const double value = number_in<double>(text.substr(plus ? 1 : 0)).value_or(NAN);
    const auto weight = static_cast<float>(value);
    if (value < 0.0 && std::isinf(weight)) return NgramModel::kNever;
    if (!std::isfinite(weight)) fail(shown(text), "a finite number");
    return weight;
  }

  const std::string& path_;
  InputLines lines_;
  int64_t line_number_ = 0;
  std::string_view line_;                // without surrounding white space
  std::vector<std::string_view> parts_;  // words of line_
  std::vector<int64_t> counts_;          // counts that the file announces
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<NgramWeights> weights_ = {{}};  // first that of the empty n-gram
};

}  // namespace

NgramModel read_arpa(const std::string& path) { return ArpaReader(path).read(); }

void write_arpa(const NgramModel& model, const std::string& path) {
  const NgramTrie& ngrams = model.ngrams();
  const std::vector<int64_t> counts = model.counts();
  std::vector<std::vector<int32_t>> sections(counts.size());
  for (int32_t ngram = 1; ngram < ngrams.size(); ++ngram)
    sections[static_cast<size_t>(ngrams.length(ngram)) - 1].push_back(ngram);
  fmt::memory_buffer text;
  const auto add = std::back_inserter(text);
  fmt::format_to(add, "\\data\\\n");
  for (size_t i = 0; i < counts.size(); ++i) fmt::format_to(add, "ngram {}={}\n", i + 1, counts[i]);
  for (size_t i = 0; i < sections.size(); ++i) {
    fmt::format_to(add, "\n\\{}-grams:\n", i + 1);
    for (const int32_t ngram : sections[i]) {
      const auto& [probability, back_off] = model.weights(ngram);
      fmt::format_to(add, "{}", probability);
      char before = '\t';
      for (const int32_t word : ngrams.words(ngram)) {
        fmt::format_to(add, "{}{}", before, model.words().words()[static_cast<size_t>(word)]);
        before = ' ';
      }
      if (back_off != 0.0f) fmt::format_to(add, "\t{}", back_off);
      fmt::format_to(add, "\n");
    }
  }
  fmt::format_to(add, "\n\\end\\\n");
  write_file(path, {text.data(), text.size()}, Unread::awaited);
}

}  // namespace wisp
