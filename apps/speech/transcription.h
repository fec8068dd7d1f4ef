// What a CTC model heard: a text, and where its words are. Any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wisp {

/// What a CTC model may say in a frame: label 0 is the blank, others are characters in UTF-8, " "
/// is the space between words if there is one.
using Labels = std::vector<std::string>;
constexpr int32_t kBlank = 0;

/// Log probabilities (T, C) of one utterance's labels, natural, row by row; a view.
class Frames {
 public:
  /// `values` are T · labels numbers. Throws Error for less than two labels, another number of
  /// values, one that is NaN or +inf, and a frame in which no label is possible.
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
  int64_t first_frame = 0, last_frame = 0;  // of its first and its last character
  /// Geometric mean, over its characters, of the highest probability in a character's frames. It
  /// is the model's own opinion, and high where models are overconfident.
  double confidence = 0.0;
};

struct Transcription {
  std::string text;
  double score = 0.0;  // natural log
  std::vector<HeardWord> words;
};

/// The most probable label of each frame, the lower one of equals.
std::vector<int32_t> best_path(const Frames& frames);
/// The most probable path whose labels, repetitions and then blanks removed, are `text`: a label
/// for each frame; of equals the one that is further on earlier. Throws Error if there is none.
/// Source: Viterbi 1967, on the states of Graves et al. 2006, section 4.1.
std::vector<int32_t> best_path_of(const Frames& frames, std::span<const int32_t> text);
/// What a path says; `score` is its log probability.
Transcription transcription_of(const Frames& frames, std::span<const int32_t> path,
                               const Labels& labels);

/// Throws Error for less than two labels, empty ones, and ones that are there twice.
void check_labels(const Labels& labels);

}  // namespace wisp
