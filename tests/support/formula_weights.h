// Weights, statistics and images from a formula, which scripts/torch_logits.py computes for
// PyTorch, so that the logits of both programs compare without a file of weights. One thread.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/copy.h"
#include "core/tensor/channel_order.h"
#include "models/model.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {

/// Numbers in center ± width / 2, by MurmurHash3's finalizer of the index. `name` chooses others.
inline Tensor formula(const std::string& name, Shape shape, double center, double width) {
  const auto seed = static_cast<uint32_t>(hash_text(name));
  const Tensor result(shape, DType::f32);
  auto* into = result.data<float>();
  const auto middle = static_cast<float>(center), range = static_cast<float>(width);
  for (int64_t i = 0; i < result.numel(); ++i) {
    uint32_t h = static_cast<uint32_t>(i) * 0x9E3779B9u + seed;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    h ^= h >> 16;
    into[i] = middle + range * (static_cast<float>(h >> 8) * 0x1p-24f - 0.5f);
  }
  return result;
}

/// A tensor of a file of weights: channels first, under its exchange name.
inline Tensor formula_weight(const std::string& name, const Shape& shape) {
  if (shape.rank() > 1) {
    const auto fan_in = static_cast<double>(shape.numel() / shape[0]);
    return formula(name, shape, 0.0, 2.0 * std::sqrt(6.0 / fan_in));
  }
  if (name.ends_with("running_mean") || name.ends_with("bias"))
    return formula(name, shape, 0.0, 0.2);
  if (name.ends_with("bn3.weight")) return formula(name, shape, 0.25, 0.25);
  return formula(name, shape, 1.0, 1.0);
}

/// An image (1, H, W, 3).
inline Tensor formula_image(int64_t height, int64_t width) {
  return channels_last(formula("input", {1, 3, height, width}, 0.0, 1.0));
}

/// A model in evaluation, with the formula's weights and statistics.
template <class M>
struct FormulaModel {
  template <class... Options>
  explicit FormulaModel(Options&&... options)
      : model(std::forward<Options>(options)...),
        parameters(worker.context, constants(), model.buffers()) {
    worker.context.training = false;
    worker.context.recording = false;
    for (const Segment& segment : parameters.all_segments())
      fill(segment.name, FlatParameters::view(parameters.weight(), segment));
    for (const Buffer* buffer : parameters.buffers()) fill(buffer->name, buffer->value);
  }

  std::vector<double> logits(const Tensor& images) {
    return values(
        model.forward(worker.context, {.inputs = {images}, .count = images.shape()[0]}, {})
            .output.value());
  }
  /// The memory of a parameter.
  Tensor weight(const std::string& name) const {
    for (const Segment& segment : parameters.all_segments()) {
      if (segment.name == name) return FlatParameters::view(parameters.weight(), segment);
    }
    throw Error("test: no parameter " + name);
  }

  TestContext worker{{.compute = DType::f32, .library = Library::fastest}};
  M model;
  FlatParameters parameters;

 private:
  /// The parameters without gradients and first values.
  std::vector<Parameter*> constants() {
    std::vector<Parameter*> all = model.parameters();
    for (Parameter* parameter : all) {
      parameter->frozen = true;
      parameter->init = {};
    }
    return all;
  }
  void fill(const std::string& name, const Tensor& into) {
    const Tensor in_file =
        formula_weight(model.exchange_names(name).front(), channels_first(into.shape()));
    copy_now(worker.stream, channels_last(in_file), into);
  }
};

}  // namespace wisp
