// The memory of every weight, gradient and per-element state: flat arenas with one index space, cut
// into named, 64-byte aligned segments. A worker builds them once, from the parameters that its
// model declared. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

/// Initial values of a parameter. Random values depend on (seed, parameter's name), so replicas
/// agree.
struct Init {
  enum class Kind { constant, normal, uniform } kind = Kind::constant;
  double value = 0.0;  // the constant, the standard deviation, or the bound of (-value, value)
};

/// One learned tensor of a model, as a module declares it. `variable` becomes valid when a
/// FlatParameters takes the parameter.
struct Parameter {
  std::string name;  // full path, "stage1.block0.conv1.weight"
  Shape shape;
  Init init;
  bool decay = true;  // whether weight decay applies (not to norms and biases)
  Variable variable;
  bool frozen = false;  // keeps its initial value, as a constant of the graph
  std::string kind;     // kind of its layer, for policies: conv, linear, norm, bias, …
};

/// State that is not learned (running statistics). Each rank trains with its own; an evaluation
/// takes rank 0's or the mean.
struct Buffer {
  std::string name;
  Shape shape;
  double initial = 0.0;
  Tensor value;
};

/// One parameter's range of the arenas. `id` is its position in all_segments().
struct Segment {
  int id = 0;
  std::string name;
  Shape shape;
  int64_t offset = 0;  // index of the first element
  int64_t numel = 0;
  bool decay = true;
  std::string kind;
};

/// The arenas' order: the model's reversed, as backward reaches its last layer first. Frozen
/// parameters come last.
std::vector<Parameter*> arena_order(std::vector<Parameter*> parameters);

/// The arenas of one worker: weights, gradients, named state and buffers, with their segments.
class FlatParameters final : public GradOwner {
 public:
  /// Places `parameters` in arena_order() and initialises them. Arenas and buffers have wide_of()
  /// the context's compute type. The parameters and the context must outlive this object. Throws
  /// Error if two parameters have one name.
  FlatParameters(Context& context, std::vector<Parameter*> parameters,
                 std::vector<Buffer*> buffers);
  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  /// Trained segments, first in every arena. All arenas except the weights end after them.
  std::span<const Segment> segments() const { return std::span(all_segments_).first(trained_); }
  std::span<const Segment> all_segments() const { return all_segments_; }  // frozen ones last
  const Segment& segment(int id) const { return all_segments_[static_cast<size_t>(id)]; }
  int64_t numel() const { return weight_.numel(); }  // elements with padding
  int64_t parameter_count() const;                   // elements of segments(), without padding
  DType dtype() const { return weight_.dtype(); }

  const Tensor& weight() const { return weight_; }
  const Tensor& grad() const { return grad_; }
  /// The trained part of weight(), as long as grad().
  Tensor trained_weight() const { return weight_.slice(0, grad_.shape()); }
  /// A named arena of per-element state (momentum, residual), made and zeroed at the first call.
  const Tensor& state(const std::string& name);
  std::vector<std::string> state_names() const;
  std::span<Buffer* const> buffers() const { return buffers_; }
  /// The memory of all buffers.
  const Tensor& buffer_arena() const { return buffer_arena_; }

  /// The segment's part of `arena`, in the parameter's shape.
  static Tensor view(const Tensor& arena, const Segment& segment) {
    return arena.slice(segment.offset, segment.shape);
  }

  /// Sets a hook that runs once per step and segment, when the segment's gradient is complete, in
  /// backward's thread.
  void on_grad_ready(std::function<void(const Segment&)> hook) { hook_ = std::move(hook); }

  /// Sets a hook that sees a gradient before on_grad_ready()'s hook, which may change it.
  void before_grad_ready(std::function<void(const Segment&)> hook) { watch_ = std::move(hook); }

  /// Updates bf16 copies of the weights, which ops then read as factors (Variable::factor). Does
  /// nothing unless activations are bf16 and the backend reads bf16 weights
  /// (Backend::reads_rounded_weights). The first call makes the copies. After it, whoever changes
  /// weights calls this before the next forward pass.
  void round_weights();

  Tensor gradient(int id) override;
  void ready(int id) override;

 private:
  void place_buffers(std::set<std::string>& names);

  Context& context_;
  std::vector<Segment> all_segments_;
  std::vector<Parameter*> parameters_;  // parameter of each segment
  size_t trained_ = 0;                  // number of trained segments
  std::vector<Buffer*> buffers_;
  Tensor weight_, grad_, buffer_arena_;
  Tensor rounded_;  // weight_ in bf16, after the first round_weights()
  std::map<std::string, Tensor> states_;
  std::function<void(const Segment&)> watch_, hook_;
};

}  // namespace wisp
