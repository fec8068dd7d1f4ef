// Small runs of a language model, for tests.
#pragma once

#include <string>

#include "tests/support/tiny_run.h"

namespace wisp {

/// Lines that a model learns in few steps: "one two three four" and "five six seven".
inline std::string tiny_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i % 2 == 0 ? "one two three four\n" : "five six seven\n";
  return text;
}

/// A run with 4 columns of this text, or of another one.
inline Config tiny_text_config(const std::string& path, const Overrides& overrides = {}) {
  return Config::from_text(R"(
threads = 1
model = { name = "lstm_lm", layers = 1, units = 12 }
data = { name = "text", window = 9 }
train = { batch = 4, epochs = 6, log_every = 100 }
optimizer = { lr = 2.0, momentum = 0.0 }
clip.norm = 1.0
timeout_s = 30.0
)",
                           "text.toml", Overrides{"data.path=" + path} + overrides);
}

/// Trains without output. `out` is the run directory.
inline void tiny_text_train(const std::string& out, const std::string& path,
                            const Overrides& overrides = {}) {
  train(tiny_text_config(path, overrides), {out, RunDirectory::Open::create, true});
}

}  // namespace wisp
