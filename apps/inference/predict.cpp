#include "apps/inference/predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "data/photos/image_reader.h"

namespace wisp {
namespace {

constexpr size_t kFilesAtOnce = 32;

template <class T>
std::vector<double> softmax(std::span<const T> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> result;
  for (const T logit : logits) result.push_back(std::exp(static_cast<double>(logit) - largest));
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  WISP_CHECK(std::isfinite(sum), "predict: the model's output is not finite; has it diverged?");
  for (double& value : result) value /= sum;
  return result;
}

std::vector<ClassProbability> largest(const std::vector<double>& probabilities, int64_t top,
                                      const std::vector<std::string>& names) {
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return probabilities[i]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  std::vector<ClassProbability> classes;
  for (const size_t index : order)
    classes.push_back({static_cast<int64_t>(index), index < names.size() ? names[index] : "",
                       probabilities[index]});
  return classes;
}

/// Reads the readable files into the first rows of `images`, in order. Returns a prediction for
/// each file, with an error for an unreadable one.
std::vector<Prediction> read(const ImageReader& reader, std::span<const std::string> files,
                             const Tensor& images) {
  std::vector<Prediction> predictions;
  int64_t row = 0;
  for (const std::string& file : files) {
    Prediction& prediction = predictions.emplace_back(Prediction{.file = file});
    try {
      reader.read(file, images.rows(row, row + 1).reshape(reader.shape()));
      ++row;
    } catch (const Error& error) {
      prediction.error = error.what();
    }
  }
  return predictions;
}

}  // namespace

void predict(Inference& model, std::span<const std::string> files, int64_t top,
             const std::function<void(const Prediction&)>& tell) {
  const ImageReader reader(model.facts(), model.compute());
  for (size_t first = 0; first < files.size(); first += kFilesAtOnce) {
    const auto some = files.subspan(first, std::min(kFilesAtOnce, files.size() - first));
    const Tensor images(reader.shape().stacked(std::ssize(some)), model.compute());
    std::vector<Prediction> predictions = read(reader, some, images);
    const int64_t rows = std::ranges::count(predictions, "", &Prediction::error);
    Tensor logits;
    if (rows > 0) {
      logits = model({.inputs = {images.rows(0, rows)}, .count = rows}).output.value();
      WISP_CHECK(logits.shape().rank() == 2 && logits.shape()[0] == rows,
                 "predict: the model's output is ", logits.shape(), " for ", rows,
                 " images, expected (", rows, ", classes)");
    }
    int64_t row = 0;
    for (Prediction& prediction : predictions) {
      if (prediction.error.empty()) {
        dispatch_float(logits.dtype(), "predict", [&](auto zero) {
          using T = decltype(zero);
          const auto classes = static_cast<size_t>(logits.shape()[1]);
          const std::span<const T> of_image(logits.rows(row, row + 1).data<T>(), classes);
          prediction.classes = largest(softmax(of_image), top, model.facts().names);
        });
        ++row;
      }
      tell(prediction);
    }
  }
}

}  // namespace wisp
