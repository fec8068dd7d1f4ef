#include "apps/inference/hear.h"

#include "core/base/error.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

std::string text_of(const int32_t* labels, int64_t most, const Labels& names) {
  std::string text;
  for (int64_t i = 0; i < most && labels[i] >= 0; ++i)
    text += names[static_cast<size_t>(labels[i])];
  return text;
}

/// Stores the transcripts of a batch's utterances and the model's output for them.
void keep(const Batch& batch, const Step& step, const Labels& names, std::vector<Heard>& all) {
  const Tensor& logits = step.output.value();
  const int64_t positions = logits.shape()[1], width = batch.targets.shape()[1];
  for (int64_t row = 0; row < batch.samples.numel(); ++row) {
    Heard& heard = all[static_cast<size_t>(batch.samples.data<int64_t>()[row])];
    heard.text = text_of(batch.targets.data<int32_t>() + row * width, width, names);
    if (heard.text.empty()) continue;  // damaged
    const Tensor frames = logits.rows(row, row + 1).reshape({positions, logits.shape()[2]});
    naming(heard.id, [&] {
      heard.log_probabilities =
          log_probabilities_of(frames.rows(0, step.lengths.data<int64_t>()[row]));
    });
  }
}

bool better(const ErrorCounts& a, const ErrorCounts& b) {
  return std::pair(a.words.edits(), a.characters.edits()) <
         std::pair(b.words.edits(), b.characters.edits());
}

}  // namespace

void check_hears(const Facts& facts, const std::string& what) {
  const bool hears =
      facts.inputs.size() == 1 && facts.inputs[0].padded && facts.inputs[0].sound.rate > 0;
  WISP_CHECK(hears, what, ": the run's model does not hear sound");
  WISP_CHECK(std::ssize(facts.names) == facts.classes, what, ": the run's model has ",
             facts.classes, " labels, its alphabet ", facts.names.size(),
             ", expected as many (model.classes)");
}

std::vector<float> log_probabilities_of(const Tensor& logits) {
  std::vector<float> result;
  for (int64_t row = 0; row < logits.shape()[0]; ++row)
    for (const double value : log_softmax(logits, row)) result.push_back(static_cast<float>(value));
  return result;
}

std::vector<Heard> hear(Inference& model, const Prepared& run, Split split,
                        const std::function<void(const std::string&)>& damaged) {
  check_hears(model.facts(), "hear");
  check_classes(run.facts(), model.facts(), "the run");
  const Examples& examples = *run.examples(split);
  std::vector<Heard> all(static_cast<size_t>(examples.count()));
  for (size_t i = 0; i < all.size(); ++i) {
    const Origin origin = examples.origin(static_cast<int64_t>(i));
    all[i] = {.id = origin.id, .speaker = origin.speaker};
  }
  Deal deal = run.options().deal(split, 0);
  deal.workers = 1;
  Loader loader(examples, deal);
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    for (const std::string& damage : loader.damage()) damaged(damage);
    keep(*batch, model(*batch), model.facts().names, all);
  }
  return all;
}

std::vector<HeardUtterance> decode(std::span<const Heard> utterances, const Labels& labels,
                                   const std::optional<BeamOptions>& beam, int threads) {
  std::vector<HeardUtterance> decoded;
  std::vector<Frames> frames;
  for (const Heard& heard : utterances) {
    if (heard.log_probabilities.empty()) continue;
    frames.emplace_back(heard.log_probabilities, std::ssize(labels));
    decoded.push_back({heard.speaker, heard.text, "", heard.id});
  }
  if (beam) {
    const std::vector<std::vector<Transcription>> found =
        beam_search(frames, labels, *beam, threads);
    for (size_t i = 0; i < found.size(); ++i) decoded[i].hypothesis = found[i].front().text;
  } else {
    for (size_t i = 0; i < frames.size(); ++i)
      decoded[i].hypothesis = transcription_of(frames[i], best_path(frames[i]), labels).text;
  }
  return decoded;
}

TriedWeights tune_decoding(std::span<const Heard> utterances, const Labels& labels,
                           BeamOptions beam, std::span<const double> alphas,
                           std::span<const double> betas, int threads,
                           const std::function<void(const TriedWeights&)>& tell) {
  WISP_CHECK(!alphas.empty() && !betas.empty(), "tune: no weights, expected one or more of each");
  std::optional<TriedWeights> best;
  for (const double alpha : alphas) {
    for (const double beta : betas) {
      beam.alpha = alpha;
      beam.beta = beta;
      const TriedWeights tried{alpha, beta,
                               count_errors(decode(utterances, labels, beam, threads)).total};
      WISP_CHECK(tried.errors.utterances > 0, "tune: no utterance, expected one or more");
      tell(tried);
      if (!best || better(tried.errors, best->errors)) best = tried;
    }
  }
  return *best;
}

}  // namespace wisp
