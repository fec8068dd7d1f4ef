// A program of your own that uses a trained run without its data. It continues a text, a character
// at a time, with a run of characters.toml.
//   read_on RUN TEXT [CHARACTERS]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ios>
#include <span>
#include <string>

#include "apps/inference/inference.h"
#include "core/base/error.h"
#include "core/random.h"

/// The data set's name for a byte: "a", or "0xe2" if it is not a character by itself in UTF-8.
std::string name_of(char c) {
  if (c >= 0) return {c};
  return wisp::concat("0x", std::hex, static_cast<int>(static_cast<unsigned char>(c)));
}

char byte_of(const std::string& name) {
  return name.size() == 1 ? name[0] : static_cast<char>(std::stoi(name, nullptr, 16));
}

/// Draws a class with its softmax probability.
int32_t draw(std::span<const float> logits, double uniform) {
  const float largest = *std::ranges::max_element(logits);
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
  WISP_CHECK(argc >= 3 && *argv[2], "usage: read_on RUN TEXT [CHARACTERS]");
  const size_t count = argc > 3 ? std::stoul(argv[3]) : 200;
  wisp::Inference model(argv[1]);
  const std::vector<std::string>& names = model.facts().names;
  wisp::Carry state = model.zeros(1);
  const wisp::Philox philox(/*seed=*/1, 0, 0);
  std::string text = argv[2];
  const size_t given = text.size();
  for (size_t i = 0; text.size() < given + count; ++i) {
    const auto at = std::find(names.begin(), names.end(), name_of(text[i]));
    WISP_CHECK(at != names.end(), name_of(text[i]), " did not occur in what the run has read");
    const wisp::Tensor character({1, 1}, wisp::DType::i32);
    *character.data<int32_t>() = static_cast<int32_t>(at - names.begin());
    const wisp::Step step = model({.inputs = {character}}, state);
    state = step.after;
    if (i + 1 < text.size()) continue;  // still reading the given text
    const float* logits = step.output.value().data<float>();
    text += byte_of(names[draw({logits, names.size()}, philox.uniform(i))]);
  }
  std::printf("%s\n", text.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "read_on: %s\n", error.what());
  return 1;
}
