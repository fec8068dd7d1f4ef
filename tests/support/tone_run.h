// A speech run that learns within a second: a low tone says "LOW", a high one "HI HI".
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "apps/train/trainer.h"
#include "core/base/error.h"
#include "tests/support/sound_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {

inline std::string tone(bool high, int64_t samples) {
  std::vector<int> wave;
  for (int64_t i = 0; i < samples; ++i)
    wave.push_back(static_cast<int>(8000 * std::sin((high ? 1.0 : 0.2) * static_cast<double>(i))));
  return wav_file(pcm16(wave));
}

/// Writes 0.wav to 7.wav, alternately a low tone by anna and a high one by ben. Returns their
/// manifest.
inline std::string write_tones(const TempDir& dir) {
  std::string list = "audio,text,speaker\n";
  for (int i = 0; i < 8; ++i) {
    const bool high = i % 2 != 0;
    dir.write(concat(i, ".wav"), tone(high, 5000 + 160 * i));
    list += concat(i, ".wav,", high ? "hi hi,ben" : "low,anna", "\n");
  }
  return dir.write("list.csv", list);
}

/// A run that trains and tests on the manifest's utterances.
inline Config tone_config(const std::string& manifest, const Overrides& overrides = {}) {
  const Overrides data{"data.train=" + manifest, "data.test=" + manifest};
  return Config::from_text(R"(
threads = 1
model = { name = "deepspeech", layers = 1, units = 16 }
data = { name = "speech", alphabet = "HILOW " }
train = { batch = 4, epochs = 40, eval_every = 0 }
optimizer = { lr = 3e-3, momentum = 0.9 }
clip.norm = 50.0
timeout_s = 30.0
)",
                           "speech.toml", data + overrides);
}

}  // namespace wisp
