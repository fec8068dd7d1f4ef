#include "apps/speech/edit_distance.h"

#include <algorithm>
#include <iterator>

#include "core/io/utf8.h"

namespace wisp {
namespace {

using Units = std::vector<std::string_view>;

/// The characters of words, with a space between two words.
Units characters_in(const Units& words) {
  Units characters;
  for (const std::string_view word : words) {
    if (!characters.empty()) characters.emplace_back(" ");
    std::ranges::copy(characters_of(word), std::back_inserter(characters));
  }
  return characters;
}

}  // namespace

std::vector<Edit> align(std::span<const std::string_view> reference,
                        std::span<const std::string_view> hypothesis) {
  const size_t rows = reference.size() + 1, columns = hypothesis.size() + 1;
  std::vector<Edit> last(rows * columns);  // last of the fewest edits: first i items to first j
  std::vector<int32_t> distance(columns);
  const auto at = [&](auto i, auto j) -> Edit& {
    return last[static_cast<size_t>(i) * columns + static_cast<size_t>(j)];
  };
  for (size_t i = 1; i < rows; ++i) at(i, 0) = Edit::deletion;
  for (size_t j = 1; j < columns; ++j) at(0, j) = Edit::insertion;
  edit_distance(
      std::ssize(reference), std::ssize(hypothesis),
      [&](int64_t i, int64_t j) {
        return reference[static_cast<size_t>(i)] == hypothesis[static_cast<size_t>(j)];
      },
      distance.data(), [&](int64_t i, int64_t j, Edit edit) { at(i + 1, j + 1) = edit; });
  std::vector<Edit> edits;
  for (size_t i = rows - 1, j = columns - 1; i > 0 || j > 0;) {
    const Edit edit = at(i, j);
    edits.push_back(edit);
    if (edit != Edit::insertion) --i;
    if (edit != Edit::deletion) --j;
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

EditCounts& EditCounts::operator+=(const EditCounts& other) {
  correct += other.correct;
  substitutions += other.substitutions;
  deletions += other.deletions;
  insertions += other.insertions;
  return *this;
}

EditCounts count_edits(std::span<const Edit> edits) {
  const auto of = [&](Edit edit) { return std::count(edits.begin(), edits.end(), edit); };
  return {of(Edit::correct), of(Edit::substitution), of(Edit::deletion), of(Edit::insertion)};
}

ErrorCounts& ErrorCounts::operator+=(const ErrorCounts& other) {
  utterances += other.utterances;
  wrong_utterances += other.wrong_utterances;
  words += other.words;
  characters += other.characters;
  return *this;
}

ErrorCounts count_errors(std::string_view reference, std::string_view hypothesis) {
  const Units said = split_words(reference), heard = split_words(hypothesis);
  ErrorCounts counts{.utterances = 1};
  counts.words = count_edits(align(said, heard));
  counts.characters = count_edits(align(characters_in(said), characters_in(heard)));
  counts.wrong_utterances = counts.words.edits() > 0 ? 1 : 0;
  return counts;
}

ErrorReport count_errors(std::span<const HeardUtterance> utterances) {
  ErrorReport report;
  for (const HeardUtterance& utterance : utterances) {
    const ErrorCounts counts = count_errors(utterance.reference, utterance.hypothesis);
    report.total += counts;
    report.speakers[utterance.speaker] += counts;
  }
  return report;
}

std::string alignment_text(std::string_view reference, std::string_view hypothesis) {
  const Units said = split_words(reference), heard = split_words(hypothesis);
  std::string lines[] = {"REF:", "HYP:", "ERR:"};
  size_t i = 0, j = 0;
  for (const Edit edit : align(said, heard)) {
    std::string cells[] = {edit == Edit::insertion ? "" : std::string(said[i++]),
                           edit == Edit::deletion ? "" : std::string(heard[j++]),
                           std::string(1, " SDI"[static_cast<size_t>(edit)])};
    const size_t width = std::max(count_characters(cells[0]), count_characters(cells[1]));
    if (edit == Edit::insertion) cells[0] = std::string(width, '*');
    if (edit == Edit::deletion) cells[1] = std::string(width, '*');
    for (size_t line = 0; line < 3; ++line)
      lines[line] += " " + cells[line] + std::string(width - count_characters(cells[line]), ' ');
  }
  std::string text;
  for (const std::string& line : lines)
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  return text;
}

}  // namespace wisp
