// A trained run in a program of one's own, without its data: goes on with a text, a character at a
// time, as a run of characters.toml has learned it.
//   read_on RUN TEXT [CHARACTERS]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "apps/inference/inference.h"
#include "core/error.h"
#include "core/random.h"

/// Draws a class with the probability that its logit says.
int32_t draw(std::span<const float> logits, double uniform) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  double rest = uniform * sum;
  int32_t drawn = 0;
  for (const float logit : logits.first(logits.size() - 1)) {
    rest -= std::exp(logit - largest);
    if (rest < 0.0) break;
    ++drawn;
  }
  return drawn;
}

int main(int argc, char** argv) try {
  WISP_CHECK(argc >= 3, "usage: read_on RUN TEXT [CHARACTERS]");
  const int count = argc > 3 ? std::atoi(argv[3]) : 200;
  wisp::Inference model(argv[1]);
  const std::vector<std::string>& names = model.facts().names;
  wisp::Carry state = model.zeros(1);
  const wisp::Philox philox(/*seed=*/1, 0, 0);
  std::string text = argv[2];
  for (int i = 0; i + 1 < count + static_cast<int>(text.size()); ++i) {
    const auto at = std::find(names.begin(), names.end(), std::string(1, text[i]));
    WISP_CHECK(at != names.end(), "'", text[i], "' did not occur in what the run has read");
    const wisp::Tensor character({1, 1}, wisp::DType::i32);
    *character.data<int32_t>() = static_cast<int32_t>(at - names.begin());
    const wisp::Step step = model({.inputs = {character}}, state);
    state = step.after;
    if (i + 1 < static_cast<int>(text.size())) continue;
    const float* logits = step.output.value().data<float>();
    text += names[draw({logits, names.size()}, philox.uniform(i))][0];
  }
  std::printf("%s\n", text.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "read_on: %s\n", error.what());
  return 1;
}
