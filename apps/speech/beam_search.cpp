#include "apps/speech/beam_search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();
constexpr int32_t kNone = -1;

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kImpossible ? high : high + std::log1p(std::exp(low - high));
}

/// The score of a prefix's finished words.
struct WordScore {
  double value = 0.0;
  int32_t state = 0;  // state of the model of words
};

/// A node in the tree of all prefixes that were ever in the beam; links are indices.
struct Prefix {
  int32_t parent, label;
  int32_t first_child = kNone, next_sibling = kNone;
  int32_t slot = kNone;  // index in the beam, or kNone
  WordScore words;
  std::optional<WordScore> ended;  // with the last word finished; on demand
};

/// A prefix in the beam, with log probabilities of its paths that end in a blank, or in a label.
struct Slot {
  int32_t prefix;
  double blank, label;
  double total = 0.0;  // of all paths
  double score = 0.0;  // total and the words' score
};

/// A prefix of the next beam: one that stays, or a child of one in this beam.
struct Candidate {
  double score;
  int32_t slot;   // of the prefix that stays, or of the parent
  int32_t label;  // kNone: it stays
  double log_probability;

  bool operator<(const Candidate& other) const {  // true if better
    if (score != other.score) return score > other.score;
    return slot != other.slot ? slot < other.slot : label < other.label;
  }
};

class Search {
 public:
  Search(const Frames& frames, const Labels& labels, const BeamOptions& options)
      : frames_(frames), labels_(labels), options_(options) {
    const auto space = std::find(labels.begin() + 1, labels.end(), " ");
    if (space != labels.end()) space_ = static_cast<int32_t>(space - labels.begin());
    child_of_.assign(labels.size(), kNone);
    prefixes_.push_back({.parent = kNone, .label = kBlank, .slot = 0});
    if (options.words) prefixes_[0].words.state = options.words->begin();
    beam_.push_back({.prefix = 0, .blank = 0.0, .label = kImpossible});
  }

  std::vector<Transcription> run() {
    for (int64_t t = 0; t < frames_.count(); ++t) advance(frames_[t]);
    std::vector<Candidate> ends;
    for (int32_t slot = 0; slot < std::ssize(beam_); ++slot)
      ends.push_back({.score = final_score(at(slot)), .slot = slot, .label = kNone});
    std::sort(ends.begin(), ends.end());
    if (std::ssize(ends) > options_.best) ends.resize(static_cast<size_t>(options_.best));
    std::vector<Transcription> found;
    for (const Candidate& end : ends) {
      const std::vector<int32_t> path = best_path_of(frames_, text_of(at(end.slot).prefix));
      found.push_back(transcription_of(frames_, path, labels_));
      found.back().score = end.score;
    }
    return found;
  }

 private:
  Slot& at(int32_t slot) { return beam_[static_cast<size_t>(slot)]; }
  Prefix& prefix(int32_t number) { return prefixes_[static_cast<size_t>(number)]; }

  void advance(const float* frame) {
    choose_labels(frame);
    stay(frame);
    begin_new(frame);
    take_best();
  }

  /// Chooses labels that may extend prefixes, the most probable ones first. With a model of words
  /// the space is kept apart, as it may raise a score.
  void choose_labels(const float* frame) {
    chosen_.resize(labels_.size() - 1);
    std::iota(chosen_.begin(), chosen_.end(), 1);
    const auto before = [&](int32_t a, int32_t b) {
      return frame[a] != frame[b] ? frame[a] > frame[b] : a < b;
    };
    std::erase_if(chosen_, [&](int32_t label) { return frame[label] < log_least_; });
    if (options_.most_labels > 0 && std::ssize(chosen_) > options_.most_labels) {
      std::nth_element(chosen_.begin(), chosen_.begin() + options_.most_labels - 1, chosen_.end(),
                       before);
      chosen_.resize(static_cast<size_t>(options_.most_labels));
    }
    std::sort(chosen_.begin(), chosen_.end(), before);
    ends_words_ = options_.words && std::erase(chosen_, space_) > 0;
  }

  /// Adds up the paths that lead to a prefix of the beam from itself, and from its parent in the
  /// beam.
  void stay(const float* frame) {
    next_.clear();
    candidates_.clear();
    for (int32_t slot = 0; slot < std::ssize(beam_); ++slot) {
      const Slot& now = at(slot);
      const Prefix& own = prefix(now.prefix);
      Slot next{.prefix = now.prefix, .blank = now.total + frame[kBlank], .label = kImpossible};
      if (own.parent != kNone) {
        next.label = now.label + frame[own.label];
        if (const int32_t parent = prefix(own.parent).slot; parent != kNone)
          next.label = log_add(next.label, before(at(parent), own.label) + frame[own.label]);
      }
      next.total = log_add(next.blank, next.label);
      next.score = next.total + own.words.value;
      next_.push_back(next);
      if (next.score > kImpossible)
        candidates_.push_back({.score = next.score, .slot = slot, .label = kNone});
    }
  }

  /// Log probability of the prefix's paths after which `label` is a new character.
  double before(const Slot& slot, int32_t label) {
    return label == prefix(slot.prefix).label ? slot.blank : slot.total;
  }

  /// Proposes children that are not in the beam. If `width` prefixes stay, children that score
  /// below all of them are skipped.
  void begin_new(const float* frame) {
    double least = kImpossible;
    if (std::ssize(candidates_) >= options_.width)
      least = std::max_element(candidates_.begin(), candidates_.end())->score;
    for (int32_t slot = 0; slot < std::ssize(beam_); ++slot) {
      const Slot& now = at(slot);
      for (int32_t child = prefix(now.prefix).first_child; child != kNone;
           child = prefix(child).next_sibling)
        if (prefix(child).slot != kNone) child_of_[static_cast<size_t>(prefix(child).label)] = slot;
      for (const int32_t label : chosen_) {
        if (now.score + frame[label] < least) break;
        propose(slot, label, frame, prefix(now.prefix).words.value, least);
      }
      if (ends_words_) propose(slot, space_, frame, ended(now.prefix).value, least);
    }
    std::fill(child_of_.begin(), child_of_.end(), kNone);
  }

  void propose(int32_t slot, int32_t label, const float* frame, double words, double least) {
    if (child_of_[static_cast<size_t>(label)] == slot) return;
    const double log_probability = before(at(slot), label) + frame[label];
    const double score = log_probability + words;
    if (score >= least && score > kImpossible)
      candidates_.push_back(
          {.score = score, .slot = slot, .label = label, .log_probability = log_probability});
  }

  void take_best() {
    const auto width = static_cast<size_t>(options_.width);
    if (candidates_.size() > width) {
      std::nth_element(candidates_.begin(), candidates_.begin() + options_.width - 1,
                       candidates_.end());
      candidates_.resize(width);
    }
    std::sort(candidates_.begin(), candidates_.end());
    taken_.clear();
    for (const Candidate& candidate : candidates_) {
      if (candidate.label == kNone) {
        taken_.push_back(next_[static_cast<size_t>(candidate.slot)]);
      } else {
        taken_.push_back({.prefix = child(at(candidate.slot).prefix, candidate.label),
                          .blank = kImpossible,
                          .label = candidate.log_probability,
                          .total = candidate.log_probability,
                          .score = candidate.score});
      }
    }
    for (const Slot& slot : beam_) prefix(slot.prefix).slot = kNone;
    beam_.swap(taken_);
    for (int32_t slot = 0; slot < std::ssize(beam_); ++slot) prefix(at(slot).prefix).slot = slot;
  }

  /// The child of a prefix by a label; made if it does not exist.
  int32_t child(int32_t parent, int32_t label) {
    for (int32_t child = prefix(parent).first_child; child != kNone;
         child = prefix(child).next_sibling)
      if (prefix(child).label == label) return child;
    const bool ends_word = label == space_ && options_.words;
    Prefix made{.parent = parent,
                .label = label,
                .next_sibling = prefix(parent).first_child,
                .words = ends_word ? ended(parent) : prefix(parent).words};
    const auto number = static_cast<int32_t>(prefixes_.size());
    WISP_CHECK(number < std::numeric_limits<int32_t>::max(), "an utterance of ", frames_.count(),
               " frames has too many prefixes");
    prefix(parent).first_child = number;
    prefixes_.push_back(made);
    return number;
  }

  /// The score of a prefix's words if its last word, if any, ends here.
  const WordScore& ended(int32_t number) {
    Prefix& own = prefix(number);
    if (own.ended) return *own.ended;
    reversed_.clear();
    for (int32_t at = number; at != 0 && prefix(at).label != space_; at = prefix(at).parent)
      reversed_.push_back(prefix(at).label);
    own.ended = own.words;
    if (reversed_.empty()) return *own.ended;
    word_.clear();
    for (auto label = reversed_.rbegin(); label != reversed_.rend(); ++label)
      word_ += labels_[static_cast<size_t>(*label)];
    const NgramModel& model = *options_.words;
    const NgramModel::Step step = model.next(own.words.state, model.words().number(word_));
    own.ended->value += options_.alpha * step.log_probability + options_.beta;
    own.ended->state = step.state;
    return *own.ended;
  }

  double final_score(const Slot& slot) {
    if (!options_.words) return slot.total;
    const WordScore& words = ended(slot.prefix);
    return slot.total + words.value +
           options_.alpha * options_.words->end(words.state).log_probability;
  }

  std::vector<int32_t> text_of(int32_t number) {
    std::vector<int32_t> text;
    for (; number != 0; number = prefix(number).parent) text.push_back(prefix(number).label);
    std::reverse(text.begin(), text.end());
    return text;
  }

  const Frames& frames_;
  const Labels& labels_;
  const BeamOptions& options_;
  const double log_least_ = std::log(options_.least_probability);
  bool ends_words_ = false;
  int32_t space_ = kNone;
  std::vector<Prefix> prefixes_;
  std::vector<Slot> beam_, next_, taken_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> chosen_;
  std::vector<int32_t> child_of_;  // by label: slot whose child by it is in the beam
  std::vector<int32_t> reversed_;
  std::string word_;
};

void check_options(const Labels& labels, const BeamOptions& options) {
  check_labels(labels);
  WISP_CHECK(options.width >= 1 && options.width <= BeamOptions::kWidest, "a beam of ",
             options.width, " prefixes, expected 1 to ", BeamOptions::kWidest);
  WISP_CHECK(options.best >= 1, options.best, " best transcriptions, expected 1 or more");
  WISP_CHECK(options.most_labels >= 0, "at most ", options.most_labels,
             " labels, expected 0 (all) or more");
  WISP_CHECK(options.least_probability >= 0.0 && options.least_probability <= 1.0,
             "labels of probability ", options.least_probability, ", expected 0 to 1");
  WISP_CHECK(std::isfinite(options.alpha) && std::isfinite(options.beta), "alpha ", options.alpha,
             " and beta ", options.beta, ", expected numbers");
}

}  // namespace

std::vector<Transcription> beam_search(const Frames& frames, const Labels& labels,
                                       const BeamOptions& options) {
  check_options(labels, options);
  WISP_CHECK(frames.labels() == std::ssize(labels), "frames of ", frames.labels(),
             " labels, expected ", labels.size());
  return Search(frames, labels, options).run();
}

std::vector<std::vector<Transcription>> beam_search(std::span<const Frames> utterances,
                                                    const Labels& labels,
                                                    const BeamOptions& options, int threads) {
  WISP_CHECK(threads >= 1, threads, " threads, expected 1 or more");
  std::vector<std::vector<Transcription>> found(utterances.size());
  std::vector<std::exception_ptr> failures(utterances.size());
  std::atomic<size_t> taken = 0;
  const auto work = [&] {
    for (size_t i; (i = taken++) < utterances.size();) {
      try {
        found[i] = beam_search(utterances[i], labels, options);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int i = 1; i < threads; ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // those that started do all the work
    }
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return found;
}

}  // namespace wisp
