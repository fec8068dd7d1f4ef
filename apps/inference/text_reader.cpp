#include "apps/inference/text_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

Vocabulary vocabulary_of(const Facts& facts) {
  const Feed& feed = facts.inputs.at(0);
  WISP_CHECK(facts.inputs.size() == 1 && feed.is_sequence() && feed.sample.rank() == 1 &&
                 feed.dtype == DType::i32,
             "the run's model reads no text: its input ", feed.name, " is ", feed.sample, " ",
             name_of(feed.dtype), ", expected tokens, (0) i32");
  WISP_CHECK(!facts.names.empty(),
             "the run has no vocabulary: its facts.json names no words (names)");
  WISP_CHECK(std::ssize(facts.names) <= facts.classes, "the run's facts.json names ",
             facts.names.size(), " words, but the model has ", facts.classes, " classes");
  return naming("the names in the run's facts.json are not a vocabulary",
                [&] { return Vocabulary(facts.names); });
}

}  // namespace

TextReader::TextReader(Inference& model)
    : model_(model), vocabulary_(vocabulary_of(model.facts())), state_(model.zeros(1)) {
  WISP_CHECK(!state_.empty(),
             "the run's model carries no state from word to word, so it cannot read on");
}

Tensor TextReader::read(std::span<const int32_t> tokens) {
  const auto positions = static_cast<int64_t>(tokens.size());
  const Tensor input({positions, 1}, DType::i32);
  std::ranges::copy(tokens, input.data<int32_t>());
  const Step step =
      model_({.inputs = {input}, .count = positions, .work = positions, .begins = false}, state_);
  state_ = step.after;
  const Tensor& logits = step.output.value();
  const Shape expected{positions, model_.facts().classes};
  WISP_CHECK(logits.shape() == expected, "the model's output is ", logits.shape(), " for ",
             positions, " tokens, expected the logits of each word, ", expected);
  return logits;
}

}  // namespace wisp
