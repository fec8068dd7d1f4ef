#include "core/train/ema.h"

#include <algorithm>

#include "core/copy.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

template <class T>
struct Move {
  T* average;
  const T* value;
  T share;  // weight of the new value
  WISP_HD void operator()(int64_t i) const { average[i] += share * (value[i] - average[i]); }
};

Tensor copy_of(const Context& context, const Tensor& tensor) {
  Tensor result = context.empty(tensor.shape(), tensor.dtype());
  copy(context.stream, tensor, result);
  return result;
}

}  // namespace

EmaOptions EmaOptions::bind(Config& config) {
  EmaOptions options;
  config.bind("ema.decay", options.decay,
              "decay of the moving average of the weights that evaluations use, in [0, 1); 0: no "
              "average");
  config.expect(options.decay >= 0.0 && options.decay < 1.0, "ema.decay", options.decay,
                "0 <= decay < 1");
  return options;
}

Ema::Ema(const Context& context, FlatParameters& parameters, EmaOptions options)
    : parameters_(parameters),
      options_(options),
      weights_(copy_of(context, parameters.trained_weight())) {
  for (const Buffer* buffer : parameters.buffers())
    buffers_.push_back(copy_of(context, buffer->value));
}

/// Calls visit(average, value) for the weights and for each buffer.
template <class Visit>
void Ema::each(const Visit& visit) const {
  visit(weights_, parameters_.trained_weight());
  for (size_t i = 0; i < buffers_.size(); ++i) visit(buffers_[i], parameters_.buffers()[i]->value);
}

void Ema::restart(const Context& context) {
  each([&](const Tensor& average, const Tensor& value) { copy(context.stream, value, average); });
}

void Ema::update(const Context& context, int64_t number) {
  const auto n = static_cast<double>(number);
  const double share = 1.0 - std::min(options_.decay, (1.0 + n) / (10.0 + n));
  each([&](const Tensor& average, const Tensor& value) {
    dispatch_float(value.dtype(), "ema", [&]<class T>(T) {
      parallel_for(context.stream, value.numel(),
                   Move<T>{average.data<T>(), value.data<T>(), static_cast<T>(share)});
    });
  });
}

void Ema::exchange(const Context& context) {
  each([&](const Tensor& average, const Tensor& value) {
    swap_contents(context.stream, average, value);
  });
}

std::vector<SavedState> Ema::state(Sharing of_weights) const {
  std::vector<SavedState> saved;
  for (const Segment& segment : parameters_.segments())
    saved.push_back({"ema/" + segment.name, FlatParameters::view(weights_, segment), of_weights});
  for (size_t i = 0; i < buffers_.size(); ++i)
    saved.push_back({"ema_buffer/" + parameters_.buffers()[i]->name, buffers_[i]});
  return saved;
}

}  // namespace wisp
