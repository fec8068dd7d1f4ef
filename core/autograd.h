// Reverse-mode differentiation. A Variable is a tensor and its place in a graph; an op computes its
// value, then records how a gradient flows back. The graph itself keeps no values: of an op's
// tensors those live on that its backward function owns. One graph belongs to one thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "core/context.h"

namespace wisp {

/// Where a gradient goes. `accumulate`: add to what is there, else overwrite.
struct GradSlot {
  Tensor into;
  bool accumulate = false;
};

namespace autograd {
struct Node;
}

/// A leaf's gradient lives outside the graph; its owner implements this.
class GradOwner {
 public:
  virtual ~GradOwner() = default;
  /// The memory for the gradient of leaf `id`.
  virtual Tensor gradient(int id) = 0;
  /// The gradient of leaf `id` is complete for this backward pass.
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
  /// The value as a factor beside activations of `type`: a copy in that type, if the value's owner
  /// keeps one, else the value.
  const Tensor& factor(DType type) const;
  /// From now on factor() gives `copy`, the value rounded to another type, beside that type.
  /// Whoever changes the value changes the copy.
  void keep_factor(Tensor copy);
  const Shape& shape() const { return value().shape(); }
  Context& context() const;
  bool requires_grad() const;

  /// Opaque outside core/autograd.cpp.
  const std::shared_ptr<autograd::Node>& node() const { return node_; }

 private:
  Tensor value_;
  std::shared_ptr<autograd::Node> node_;
};

/// What a backward function sees of its op's inputs.
class Inputs {
 public:
  /// Whether input `i` wants a gradient at all.
  bool wanted(size_t i) const;
  /// Where to put the gradient of input `i`; ask once, and only if wanted. The slot must be filled.
  GradSlot slot(size_t i);
  /// The same. `spent`, a tensor of that input's shape and type which the backward function reads
  /// no more but where it writes the gradient: if nobody else has its memory, the gradient may take
  /// that.
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

/// A number that an op was told beside its inputs.
struct OpAttribute {
  template <class T>
  OpAttribute(const char* attribute, T number)
      : name(attribute), value(static_cast<double>(number)) {}

  const char* name;
  double value;
};

/// The result of an op. If no input wants a gradient, or the context does not record, the graph
/// ends here and `backward` is dropped. `attributes` are what Context::log needs of the op.
Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs,
                Backward backward, std::initializer_list<OpAttribute> attributes = {});

struct BackwardOptions {
  double seed = 1.0;  // dL/dloss: 1 / (workers * micro-batches), so that a sum over workers is the
                      // global mean
  bool accumulate = false;  // add to the leaves' gradients: second and later micro-batches
  bool notify = true;       // tell owners when a leaf is complete: the last micro-batch
};

/// Walks the graph from `loss` (one element), newest node first. Each node is visited once, when
/// all its uses are done; its saved tensors go at once. The graph cannot be walked again. Throws
/// Error naming the op if `loss` has more than one element or nothing to differentiate.
void backward(const Variable& loss, BackwardOptions options = {});

}  // namespace wisp
