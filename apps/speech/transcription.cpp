#include "apps/speech/transcription.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr double kNoPath = -std::numeric_limits<double>::infinity();

/// A character of a path, with its consecutive frames.
struct Character {
  int32_t label;
  int64_t first, last;
  double log_probability;  // highest in its frames
};

std::vector<Character> characters_of(const Frames& frames, std::span<const int32_t> path) {
  std::vector<Character> characters;
  int32_t before = kBlank;
  for (int64_t t = 0; t < frames.count(); ++t) {
    const int32_t label = path[static_cast<size_t>(t)];
    const double value = frames[t][label];
    if (label != kBlank && label == before) {
      characters.back().last = t;
      characters.back().log_probability = std::max(characters.back().log_probability, value);
    } else if (label != kBlank) {
      characters.push_back({label, t, t, value});
    }
    before = label;
  }
  return characters;
}

/// The likeliest paths of a text, advanced frame by frame. States: blank, text[0], blank, text[1],
/// …, blank.
class TextPaths {
 public:
  explicit TextPaths(std::span<const int32_t> text)
      : text_(text), best_(2 * text.size() + 1, kNoPath) {
    best_[0] = 0.0;  // before the first frame: one step leads to the first character
  }

  size_t states() const { return best_.size(); }
  int32_t label_of(size_t state) const { return state % 2 == 0 ? kBlank : text_[state / 2]; }
  /// The log probability of the likeliest path to a state.
  double log_probability(size_t state) const { return best_[state]; }
  size_t likeliest_end() const {
    const size_t last = states() - 1;
    return last > 0 && best_[last - 1] > best_[last] ? last - 1 : last;
  }

  /// Advances by a frame. `steps`, unless empty, gets for each state the number of states that its
  /// likeliest path moves forward.
  void advance(const float* frame, std::span<uint8_t> steps) {
    for (size_t state = states(); state-- > 0;) {  // downwards: reads the last frame's
      double value = best_[state];
      size_t step = 0;
      const size_t furthest =
          state % 2 == 1 && state > 1 && label_of(state) != label_of(state - 2) ? 2 : 1;
      for (size_t back = 1; back <= std::min(furthest, state); ++back) {
        if (best_[state - back] <= value) continue;
        value = best_[state - back];
        step = back;
      }
      best_[state] = value + frame[label_of(state)];
      if (!steps.empty()) steps[state] = static_cast<uint8_t>(step);
    }
  }

 private:
  std::span<const int32_t> text_;
  std::vector<double> best_;
};

}  // namespace

Frames::Frames(std::span<const float> values, int64_t labels)
    : values_(values.data()), labels_(labels) {
  WISP_CHECK(labels >= 2, "frames of ", labels, " labels, expected 2 or more");
  WISP_CHECK(std::ssize(values) % labels == 0, values.size(), " log probabilities, expected ",
             labels, " for each frame");
  count_ = std::ssize(values) / labels;
  for (int64_t t = 0; t < count_; ++t) {
    bool possible = false;
    for (int64_t label = 0; label < labels; ++label) {
      const float value = (*this)[t][label];
      WISP_CHECK(value < std::numeric_limits<float>::infinity(), "frame ", t, ": label ", label,
                 " has the log probability ", value, ", expected a number");
      possible = possible || std::isfinite(value);
    }
    WISP_CHECK(possible, "frame ", t, ": all labels have the log probability -inf");
  }
}

std::vector<int32_t> best_path(const Frames& frames) {
  std::vector<int32_t> path;
  for (int64_t t = 0; t < frames.count(); ++t)
    path.push_back(
        static_cast<int32_t>(std::max_element(frames[t], frames[t] + frames.labels()) - frames[t]));
  return path;
}

std::vector<int32_t> best_path_of(const Frames& frames, std::span<const int32_t> text) {
  const size_t count = static_cast<size_t>(frames.count());
  // Each block of frames keeps only its initial state; its steps are computed again on the way
  // back. A block of sqrt(8 count) frames needs the least memory in all.
  const size_t block = 1 + static_cast<size_t>(std::sqrt(8.0 * static_cast<double>(count)));
  TextPaths paths(text);
  std::vector<TextPaths> begins;
  for (size_t t = 0; t < count; ++t) {
    if (t % block == 0) begins.push_back(paths);
    paths.advance(frames[static_cast<int64_t>(t)], {});
  }
  const size_t states = paths.states();
  size_t state = paths.likeliest_end();
  WISP_CHECK(paths.log_probability(state) > kNoPath, count, " frames have no path of ", text.size(),
             " labels");
  std::vector<int32_t> path(count);
  std::vector<uint8_t> steps(std::min(block, count) * states);
  const auto steps_into = [&](size_t t) {
    return std::span(steps).subspan(t % block * states, states);
  };
  for (size_t end = count; !begins.empty(); begins.pop_back()) {
    const size_t begin = (begins.size() - 1) * block;
    for (size_t t = begin; t < end; ++t)
      begins.back().advance(frames[static_cast<int64_t>(t)], steps_into(t));
    for (; end > begin; --end) {
      path[end - 1] = paths.label_of(state);
      state -= steps_into(end - 1)[state];
    }
  }
  return path;
}

Transcription transcription_of(const Frames& frames, std::span<const int32_t> path,
                               const Labels& labels) {
  WISP_CHECK(std::ssize(path) == frames.count(), "a path of ", path.size(), " labels, expected ",
             frames.count());
  WISP_CHECK(std::ssize(labels) == frames.labels(), labels.size(), " labels, expected ",
             frames.labels());
  Transcription found;
  for (int64_t t = 0; t < frames.count(); ++t)
    found.score += frames[t][path[static_cast<size_t>(t)]];
  int64_t in_word = 0;  // characters of the word; `confidence` holds their sum of log probabilities
  const auto end_word = [&] {
    if (in_word > 0) {
      double& confidence = found.words.back().confidence;
      confidence = std::exp(confidence / static_cast<double>(in_word));
    }
    in_word = 0;
  };
  for (const Character& character : characters_of(frames, path)) {
    const std::string& text = labels[static_cast<size_t>(character.label)];
    found.text += text;
    if (text == " ") {
      end_word();
      continue;
    }
    if (in_word++ == 0) found.words.push_back({.word = "", .first_frame = character.first});
    HeardWord& word = found.words.back();
    word.word += text;
    word.last_frame = character.last;
    word.confidence += character.log_probability;
  }
  end_word();
  return found;
}

void check_labels(const Labels& labels) {
  WISP_CHECK(labels.size() >= 2, labels.size(), " labels, expected the blank and one or more");
  std::set<std::string> seen;
  for (size_t i = 1; i < labels.size(); ++i) {
    WISP_CHECK(!labels[i].empty(), "label ", i, " is empty, expected a character");
    WISP_CHECK(seen.insert(labels[i]).second, "label ", i, ", '", labels[i],
               "', is there twice, expected once");
  }
}

}  // namespace wisp
