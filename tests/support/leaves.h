// A gradient owner for tests. Its gradients are host tensors that start as NaN, so that a gradient
// added instead of written is found. One thread.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "core/autograd.h"
#include "tests/support/tensors.h"

namespace wisp {

class Leaves final : public GradOwner {
 public:
  /// Makes a leaf. Its id is the number of leaves made before.
  Variable make(Context& context, const Tensor& value) {
    gradients_.push_back(
        full(value.shape(), std::numeric_limits<double>::quiet_NaN(), value.dtype()));
    return Variable::leaf(context, value, *this, static_cast<int>(gradients_.size()) - 1);
  }
  const std::vector<Tensor>& gradients() const { return gradients_; }

  std::function<void(int)> on_ready;

  Tensor gradient(int id) override { return gradients_[static_cast<size_t>(id)]; }
  void ready(int id) override {
    if (on_ready) on_ready(id);
  }

 private:
  std::vector<Tensor> gradients_;
};

}  // namespace wisp
