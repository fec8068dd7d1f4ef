// A transcription of a CTC model's output: the text and the positions of its words. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wisp {

/// The alphabet of a CTC model: label 0 is the blank, others are characters in UTF-8. " ", if
/// present, is the space between words.
using Labels = std::vector<std::string>;
constexpr int32_t kBlank = 0;

/// A view of the natural log probabilities (T, C) of one utterance's labels, row by row.
class Frames {
 public:
  /// `values` has T · labels numbers. Throws Error for fewer than two labels, a number of values
  /// that `labels` does not divide, NaN or +inf, and a frame in which no label is possible.
  Frames(std::span<const float> values, int64_t labels);

  int64_t count() const { return count_; }
  int64_t labels() const { return labels_; }
  const float* operator[](int64_t frame) const { return values_ + frame * labels_; }

 private:
  const float* values_;
  int64_t labels_, count_;
};

struct HeardWord {
  std::string word;
  int64_t first_frame = 0, last_frame = 0;  // frames of the first and the last character
  /// Geometric mean over its characters of the highest probability in each character's frames. It
  /// is the model's own estimate, and too high for an overconfident model.
  double confidence = 0.0;
};

struct Transcription {
  std::string text;
  double score = 0.0;  // natural log
  std::vector<HeardWord> words;
};

/// The most probable label of each frame; of equal ones the lowest.
std::vector<int32_t> best_path(const Frames& frames);
/// The most probable path of `text`: a label per frame that gives `text` when repetitions and then
/// blanks are removed. Of equal paths, the one that advances earlier. Throws Error if there is
/// none. Source: Viterbi 1967, on the states of Graves et al. 2006, section 4.1.
std::vector<int32_t> best_path_of(const Frames& frames, std::span<const int32_t> text);
/// The transcription of a path; `score` is the path's log probability.
Transcription transcription_of(const Frames& frames, std::span<const int32_t> path,
                               const Labels& labels);

/// Throws Error for fewer than two labels, empty labels and repeated ones.
void check_labels(const Labels& labels);

}  // namespace wisp
