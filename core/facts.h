// Facts about a model's inputs and targets: enough to build the model without the data. Plain
// values.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace wisp {

/// Normalisation of pixels from 0 to 255, per channel: (pixel - mean) / deviation.
struct Normalization {
  std::vector<double> mean, deviation;
  bool operator==(const Normalization&) const = default;
};

/// Conversion of sound to frames of a spectrogram.
struct SpectrogramOptions {
  int64_t rate = 16000;    // samples per second; 0: no sound
  int64_t window_ms = 20;  // length of the Hamming window
  int64_t stride_ms = 10;  // from one frame to the next
  int64_t mels = 0;        // number of mel bands; 0: all frequencies instead
  bool operator==(const SpectrogramOptions&) const = default;
};

/// How evaluation makes an image of a photo: the shorter side is scaled to `side`, and the centre
/// is cut out.
struct PhotoFit {
  int64_t side = 0;                 // in pixels; 0: the largest centred part is scaled to the image
  std::string filter = "bilinear";  // or "bicubic"
  bool operator==(const PhotoFit&) const = default;
};

/// One of a model's inputs.
struct Feed {
  std::string name;             // input's name in exported files
  Shape sample;                 // shape of one sample, (H, W, C); 0: a varying extent
  DType dtype = DType::f32;     // f32: the model's compute type
  Normalization normalization;  // empty except for images
  int64_t ids = 0;              // number of table rows, if inputs are ids (words) in [0, ids)
  bool padded = false;  // samples vary in length and are padded; Batch::lengths has the lengths
  SpectrogramOptions sound{.rate = 0};  // used for spectrograms only
  PhotoFit photo;                       // used for photos only

  /// Whether the first extent varies from batch to batch. A batch is then (T, N, …), else (N, …).
  bool is_sequence() const { return sample.rank() > 0 && sample[0] == 0 && !padded; }
  bool operator==(const Feed&) const = default;
};

/// A model's inputs and classes, as the data set says.
struct Facts {
  std::vector<Feed> inputs;
  int64_t classes = 0;             // number of classes of targets; a model may have more
  std::vector<std::string> names;  // names of the classes, may be empty
  std::string work = "images";     // unit of a sample's work, for speed
  bool operator==(const Facts&) const = default;

  /// The shape (H, W, C) of a sample. Throws Error, naming `model`, unless the only input is an
  /// image.
  const Shape& image(const std::string& model) const {
    WISP_CHECK(inputs.size() == 1, model, ": the data's samples have ", inputs.size(),
               " parts, expected an image");
    const Shape& sample = inputs[0].sample;
    WISP_CHECK(sample.rank() == 3, model, ": the data's samples have shape ", sample,
               ", expected images (H, W, C)");
    return sample;
  }
};

}  // namespace wisp
