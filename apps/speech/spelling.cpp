#include "apps/speech/spelling.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Whether a word is a sequence of labels other than the space; labels are characters.
bool can_write(std::string_view word, const Labels& labels) {
  while (!word.empty()) {
    const auto next = std::find_if(
        labels.begin() + kBlank + 1, labels.end(),
        [&](const std::string& label) { return label != " " && word.starts_with(label); });
    if (next == labels.end()) return false;
    word.remove_prefix(next->size());
  }
  return true;
}

}  // namespace

std::string spelling_notice(const NgramModel& model, const Labels& labels) {
  int64_t words = 0, written = 0;
  std::string_view other;
  for (const std::string& word : model.words().words()) {
    if (word == NgramModel::kBegin || word == NgramModel::kEnd || word == NgramModel::kUnknown)
      continue;
    ++words;
    if (can_write(word, labels)) {
      ++written;
    } else if (other.empty()) {
      other = word;
    }
  }
  if (2 * written >= words) return {};
  std::string alphabet;
  for (size_t label = kBlank + 1; label < labels.size(); ++label) alphabet += labels[label];
  return concat(written, " of its ", words, " words can be written in \"", alphabet,
                "\"; a word that cannot, such as '", other, "', is never recognised");
}

}  // namespace wisp
