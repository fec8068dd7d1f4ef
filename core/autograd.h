// Reverse-mode differentiation. A Variable is a tensor and its place in a graph. An op computes its
// value, then records how a gradient flows back. The graph keeps no values: a tensor of an op lives
// on only if the op's backward function owns it. One graph belongs to one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/context.h"

namespace wisp {

/// The destination of a gradient. With `accumulate` the gradient is added to `into`, else it
/// overwrites `into`.
struct GradSlot {
  Tensor into;
  bool accumulate = false;
};

namespace autograd {
struct Node;
}

/// The owner of leaves' gradients, which lie outside the graph.
class GradOwner {
 public:
  virtual ~GradOwner() = default;
  /// Returns the memory for the gradient of leaf `id`.
  virtual Tensor gradient(int id) = 0;
  /// Called when the gradient of leaf `id` is complete for this backward pass.
  virtual void ready(int id) = 0;
};

class Variable {
 public:
  Variable() = default;
  /// A constant: data, labels.
  Variable(Context& context, Tensor value);
  /// A leaf whose gradient `owner` keeps under `id`. The owner outlives the variable.
  static Variable leaf(Context& context, Tensor value, GradOwner& owner, int id);

  bool defined() const { return node_ != nullptr; }
  const Tensor& value() const;
  /// The tensor that an op multiplies with activations of `type`: keep_factor()'s copy if it has
  /// that type, else the value.
  const Tensor& factor(DType type) const;
  /// Makes factor() return `copy`, the value rounded to another type, for activations of that type.
  /// Whoever changes the value also updates the copy.
  void keep_factor(Tensor copy);
  const Shape& shape() const { return value().shape(); }
  Context& context() const;
  /// Whether a parameter leads here. Stays so after backward() has walked the graph.
  bool requires_grad() const;

  /// Opaque outside core/autograd.cpp.
  const std::shared_ptr<autograd::Node>& node() const { return node_; }

 private:
  Tensor value_;
  std::shared_ptr<autograd::Node> node_;
};

/// A backward function's view of its op's inputs.
class Inputs {
 public:
  /// Whether input `i` needs a gradient.
  bool wanted(size_t i) const;
  /// The slot for the gradient of input `i`. Ask once, only for a wanted input, and fill it.
  GradSlot slot(size_t i);
  /// A slot that may reuse memory. `spent` has the input's shape and type, and the backward
  /// function does not read an element of it after it writes the same element of the gradient. The
  /// gradient may take the memory of `spent` if nobody else owns it.
  GradSlot slot(size_t i, const Tensor& spent);

  struct Pass;
  Inputs(autograd::Node& node, Pass& pass) : node_(node), pass_(pass) {}

 private:
  autograd::Node& node_;
  Pass& pass_;
};

/// Gets dL/d(value) and fills the slots of the wanted inputs. It must own (by copy) every tensor it
/// reads.
using Backward = std::function<void(const Tensor& dy, Inputs& in)>;

/// A numeric argument of an op, beside its inputs.
struct OpAttribute {
  template <class T>
  OpAttribute(const char* attribute, T number)
      : name(attribute), value(static_cast<double>(number)) {}

  const char* name;
  double value;
};

/// The result of an op. If no input needs a gradient, or the context does not record, the graph
/// ends here and `backward` is dropped. `attributes` are written to Context::log.
Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs,
                Backward backward, std::initializer_list<OpAttribute> attributes = {});

struct BackwardOptions {
  double seed = 1.0;        // dL/dloss: this batch's share of the targets of the whole step
  bool accumulate = false;  // add to the leaves' gradients: second and later micro-batches
  bool notify = true;       // call GradOwner::ready: last micro-batch
};

/// Walks the graph from `loss` (one element), newest node first. Each node is visited once, after
/// all its uses, and releases its saved tensors at once, so no part of the graph can be walked
/// again. Throws Error with the op's name, before it writes a gradient, if `loss` has more than one
/// element, or depends on an op that was walked: add losses that share ops and walk once. Throws
/// Error if there is nothing to differentiate. After an exception of an op or an owner the leaves'
/// gradients are undefined, and the next pass is as after one that ended.
void backward(const Variable& loss, BackwardOptions options = {});

}  // namespace wisp
