// Times beam search and n-gram queries, in CPU time, so that other load on the machine does not
// count. The posteriors are drawn, and each frame gives most of the probability to one label. The
// trigram model is of drawn words. Usage: beam_bench [FRAMES]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "apps/speech/beam_search.h"
#include "apps/speech/ngram_training.h"
#include "core/random.h"

namespace wisp {
namespace {

Labels letters() {
  Labels labels = {"", " ", "'"};
  for (char letter = 'a'; letter <= 'z'; ++letter) labels.emplace_back(1, letter);
  return labels;
}

double core_us() { return 1e6 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, 0, 0) {}
  uint32_t below(uint32_t bound) { return random_.below(next_++, bound); }
  double uniform() { return (below(1u << 30) + 0.5) / (1u << 30); }

 private:
  Philox random_;
  uint64_t next_ = 0;
};

/// Sentences of ten words from a drawn vocabulary of `words` words, with frequencies by Zipf's law.
std::string drawn_text(Draw& draw, uint32_t words, int64_t sentences) {
  std::vector<std::string> vocabulary;
  for (uint32_t i = 0; i < words; ++i) {
    vocabulary.emplace_back();
    for (uint32_t letter = 0, length = 2 + draw.below(7); letter < length; ++letter)
      vocabulary.back() += static_cast<char>('a' + draw.below(26));
  }
  std::string text;
  for (int64_t i = 0; i < 10 * sentences; ++i) {
    const auto rank = static_cast<size_t>(std::pow(words, draw.uniform())) - 1;
    text += vocabulary[std::min(rank, vocabulary.size() - 1)] + (i % 10 == 9 ? "\n" : " ");
  }
  return text;
}

/// Log-probabilities of a path that says the text, with two blanks before each character. The other
/// labels of a frame share the rest as in a softmax of drawn numbers.
std::vector<float> drawn_frames(Draw& draw, const std::string& text, int64_t frames,
                                const Labels& labels, double peak) {
  std::vector<float> values;
  for (int64_t t = 0, character = 0; t < frames; ++t) {
    size_t said = 0;
    if (t % 3 == 2) {
      const char letter = text[static_cast<size_t>(character++) % text.size()];
      said = letter == '\n' || letter == ' ' ? 1 : 3 + static_cast<size_t>(letter - 'a');
    }
    std::vector<double> logits;
    for (size_t label = 0; label < labels.size(); ++label)
      logits.push_back((label == said ? peak : 0.0) - 1.5 * std::log(-std::log(draw.uniform())));
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit);
    for (const double logit : logits) values.push_back(static_cast<float>(logit - std::log(sum)));
  }
  return values;
}

void time_queries(const NgramModel& model, Draw& draw) {
  std::vector<int32_t> words(1 << 20);
  for (int32_t& word : words)
    word = static_cast<int32_t>(draw.below(static_cast<uint32_t>(model.words().size())));
  double sum = 0.0;
  int32_t state = model.begin();
  const double begin = core_us();
  for (const int32_t word : words) {
    const NgramModel::Step step = model.next(state, word);
    state = step.state;
    sum += step.log_probability;
  }
  fmt::print("{:.1f} million queries a second (mean {:.2f} nats)\n",
             static_cast<double>(words.size()) / (core_us() - begin),
             -sum / static_cast<double>(words.size()));
}

void run(int64_t count) {
  Draw draw(1);
  const std::string text = drawn_text(draw, 20'000, 100'000);
  double begin = core_us();
  const NgramModel model = train_ngrams(text, 3);
  fmt::print("a million words in {:.1f} s:", (core_us() - begin) / 1e6);
  for (const int64_t ngrams : model.counts()) fmt::print(" {}", ngrams);
  fmt::print(" n-grams\n");
  time_queries(model, draw);
  const Labels labels = letters();
  for (const double peak : {12.0, 8.0, 5.0}) {
    const std::vector<float> values = drawn_frames(draw, text, count, labels, peak);
    const Frames frames(values, std::ssize(labels));
    double sum = 0.0;
    for (int64_t t = 0; t < count; ++t)
      sum += std::exp(*std::max_element(frames[t], frames[t] + frames.labels()));
    fmt::print("mean highest probability {:.2f}:\n", sum / static_cast<double>(count));
    for (const int64_t width : {16, 64, 256})
      for (const double least : {0.0, 1e-4})
        for (const NgramModel* words : {static_cast<const NgramModel*>(nullptr), &model}) {
          begin = core_us();
          beam_search(frames, labels, {.width = width, .least_probability = least, .words = words});
          fmt::print("  beam {:3}, labels above {:g}{}: {:.0f} frames/s\n", width, least,
                     words ? ", trigrams" : "",
                     static_cast<double>(count) / (core_us() - begin) * 1e6);
        }
  }
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) { wisp::run(argc > 1 ? std::atoll(argv[1]) : 3000); }
