// Published speech corpora, and manifests of the user's own corpora.
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "data/examples.h"
#include "data/order.h"
#include "data/speech/manifest.h"
#include "data/speech/speech_source.h"
#include "data/speech/transcripts.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// The names of `count` speakers, drawn by the number of speakers alone; sorted.
std::set<std::string> speakers_held_out(const std::vector<Utterance>& utterances, int64_t count) {
  std::set<std::string> known;
  for (const Utterance& utterance : utterances) known.insert(utterance.speaker);
  const std::vector<std::string> speakers(known.begin(), known.end());
  WISP_CHECK(count < std::ssize(speakers), "data.validation is ", count, " of ", speakers.size(),
             " speakers, expected fewer");
  std::set<std::string> held_out;
  const std::vector<int64_t> order = shuffled(std::ssize(speakers), 0, 0);
  for (int64_t i = 0; i < count; ++i)
    held_out.insert(speakers[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  return held_out;
}

/// AN4: 948 training utterances of 74 people, 130 test utterances of 10 others: spelled names,
/// numbers, dates. Source: Acero and Stern 1990, Carnegie Mellon University's Robust Speech group.
class An4 final : public SpeechSource {
 public:
  explicit An4(Config& config) : SpeechSource(config, "an4") {
    config.bind("data.path", path_, "folder with an4, or the folder an4");
    config.bind(
        "data.validation", validation_,
        "number of training speakers held out for validation; they decide the best checkpoint and "
        "the plateau");
    config.expect(validation_ >= 0, "data.validation", validation_, "0 or more speakers");
  }
  int64_t held_out() const override { return validation_; }

 private:
  FoundUtterances utterances(Split split) const override {
    const std::string inside = path_ + "/an4";
    const std::string wav = (fs::is_directory(inside) ? inside : path_) + "/wav/";
    if (split == Split::test) return read_transcripts(wav + "an4test_clstk");
    if (split == Split::validation && validation_ == 0) return {};
    FoundUtterances all = read_transcripts(wav + "an4_clstk");
    const std::set<std::string> held_out = speakers_held_out(all.utterances, validation_);
    std::erase_if(all.utterances, [&](const Utterance& utterance) {
      return (held_out.count(utterance.speaker) != 0) != (split == Split::validation);
    });
    return all;
  }

  std::string path_ = "data-cache";
  int64_t validation_ = 0;
};

/// LibriSpeech. Source: Panayotov et al. 2015.
class LibriSpeech final : public SpeechSource {
 public:
  explicit LibriSpeech(Config& config) : SpeechSource(config, "librispeech") {
    config.bind("data.path", path_, "folder with LibriSpeech, or the folder LibriSpeech");
    config.bind("data.train", train_, "training subsets");
    config.bind(
        "data.validation", validation_,
        "validation subsets, which decide the best checkpoint and the plateau; none: the last "
        "checkpoint is the best");
    config.bind("data.test", test_, "test subsets");
  }
  bool has_validation() const override { return !validation_.empty(); }

 private:
  FoundUtterances utterances(Split split) const override {
    const std::string inside = path_ + "/LibriSpeech";
    const std::string folder = (fs::is_directory(inside) ? inside : path_) + "/";
    FoundUtterances all;
    for (const std::string& subset : split == Split::train        ? train_
                                     : split == Split::validation ? validation_
                                                                  : test_) {
      const auto [part, notices] = read_transcripts(folder + subset);
      all.utterances.insert(all.utterances.end(), part.begin(), part.end());
      all.notices.insert(all.notices.end(), notices.begin(), notices.end());
    }
    return all;
  }

  std::string path_ = "data-cache";
  std::vector<std::string> train_{"train-clean-100", "train-clean-360", "train-other-500"};
  std::vector<std::string> validation_{"dev-clean"}, test_{"test-clean"};
};

class Manifests final : public SpeechSource {
 public:
  explicit Manifests(Config& config) : SpeechSource(config, "speech") {
    config.bind("data.train", train_, "manifest of the training utterances");
    config.bind(
        "data.validation", validation_,
        "manifest of the validation utterances, which decide the best checkpoint and the plateau; "
        "empty: the last checkpoint is the best");
    config.bind("data.test", test_, "manifest of the test utterances");
  }
  bool has_validation() const override { return !validation_.empty(); }

 private:
  FoundUtterances utterances(Split split) const override {
    const std::string& path = split == Split::train        ? train_
                              : split == Split::validation ? validation_
                                                           : test_;
    if (path.empty() && split == Split::validation) return {};
    WISP_CHECK(!path.empty(), "data.", name_of(split), " names no manifest");
    return {read_manifest(path), {}};
  }

  std::string train_, validation_, test_;
};

const DataRegistration an4("an4", "CMU AN4, spelled names and numbers (Acero & Stern 1990)",
                           make_source<An4>);
const DataRegistration librispeech("librispeech", "LibriSpeech, read books (Panayotov et al. 2015)",
                                   make_source<LibriSpeech>);
const DataRegistration speech("speech", "utterances listed in manifests", make_source<Manifests>);

}  // namespace
}  // namespace wisp
