// What data says of a model's two ends: all that is needed to build the model, without the data.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace wisp {

/// What becomes of pixels, in 0 to 255: (pixel - mean) / deviation, channel by channel.
struct Normalization {
  std::vector<double> mean, deviation;
  bool operator==(const Normalization&) const = default;
};

/// How sound becomes frames.
struct SpectrogramOptions {
  int64_t rate = 16000;    // samples per second; 0: it is no sound
  int64_t window_ms = 20;  // a Hamming window
  int64_t stride_ms = 10;  // from one frame to the next
  int64_t mels = 0;        // mel bands that stand for the frequencies; 0: all frequencies
  bool operator==(const SpectrogramOptions&) const = default;
};

/// One of a model's inputs.
struct Feed {
  std::string name;             // in exported files
  Shape sample;                 // of one sample: (H, W, C); 0: an extent that varies
  DType dtype = DType::f32;     // f32: whatever the model computes in
  Normalization normalization;  // of images; else empty
  int64_t ids = 0;      // of numbers that name rows of a table, as words do: they are in [0, ids)
  bool padded = false;  // samples vary on their own, and lie side by side with Batch::lengths
  SpectrogramOptions sound{.rate = 0};  // of spectrograms

  /// Whether the first extent varies from batch to batch: then a batch is (T, N, …), else (N, …).
  bool is_sequence() const { return sample.rank() > 0 && sample[0] == 0 && !padded; }
  bool operator==(const Feed&) const = default;
};

struct Facts {
  std::vector<Feed> inputs;
  int64_t classes = 0;             // that a target is one of; a model may have more
  std::vector<std::string> names;  // of the classes; empty: they have none
  std::string work = "images";     // what a sample's work is counted in, for speed
  bool operator==(const Facts&) const = default;

  /// The shape (H, W, C) of a sample. Throws Error, naming `model`, if the only input is no image.
  const Shape& image(const std::string& model) const;
};

}  // namespace wisp
