// Where every weight, gradient and piece of per-element state lives: flat arenas in one index
// space, cut into named, 64-byte aligned segments. Built once per worker from the parameters a
// model declared; one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/autograd.h"

namespace wisp {

/// Initial values of a parameter; random ones are drawn from (seed, parameter's name), so replicas
/// agree.
struct Init {
  enum class Kind { constant, normal, uniform } kind = Kind::constant;
  double value = 0.0;  // the constant, the standard deviation, or the bound of (-value, value)
};

/// One learned tensor of a model, as a module declares it. Its variable becomes valid when a
/// FlatParameters takes it.
struct Parameter {
  std::string name;  // full path, "stage1.block0.conv1.weight"
  Shape shape;
  Init init;
  bool decay = true;  // weight decay applies (not to norms and biases)
  Variable variable;
  bool frozen = false;  // keeps its initial value: a constant of the graph
  std::string kind;     // of the layer it belongs to, for policies: conv, linear, norm, bias, …
};

/// State that is not learned (running statistics). Kept per rank, saved, never exchanged.
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
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  bool decay = true;
  std::string kind;
};

/// The order of the arena: the reverse of the model's (that in which gradients become ready), the
/// frozen ones behind all others.
std::vector<Parameter*> arena_order(std::vector<Parameter*> parameters);

class FlatParameters final : public GradOwner {
 public:
  /// Places `parameters` in arena_order() and initialises them. Arenas and buffers have the
  /// wide_of() the context's compute dtype. The parameters and the context outlive this object.
  /// Throws Error for two parameters of one name.
  FlatParameters(Context& context, std::vector<Parameter*> parameters,
                 std::vector<Buffer*> buffers);
  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  /// What is trained. Everything but the weight arena ends with these.
  std::span<const Segment> segments() const { return std::span(all_segments_).first(trained_); }
  std::span<const Segment> all_segments() const { return all_segments_; }  // frozen ones last
  int64_t numel() const { return weight_.numel(); }                        // with padding
  int64_t parameter_count() const;  // of segments(), without padding
  DType dtype() const { return weight_.dtype(); }

  const Tensor& weight() const { return weight_; }
  const Tensor& grad() const { return grad_; }
  /// The part of weight() that is trained: as long as grad().
  Tensor trained_weight() const { return weight_.slice(0, grad_.shape()); }
  /// A named arena of per-element state (momentum, residual): made and zeroed at the first call.
  const Tensor& state(const std::string& name);
  std::vector<std::string> state_names() const;
  std::span<Buffer* const> buffers() const { return buffers_; }
  /// Where all of them lie.
  const Tensor& buffer_arena() const { return buffer_arena_; }

  /// `arena`'s part that belongs to the segment, in the parameter's shape.
  static Tensor view(const Tensor& arena, const Segment& segment) {
    return arena.slice(segment.offset, segment.shape);
  }

  /// Called in backward's thread, once per step and segment, when the segment's gradient is
  /// complete.
  void on_grad_ready(std::function<void(const Segment&)> hook) { hook_ = std::move(hook); }

  /// Called in the same place, before that: nobody has changed the gradient yet.
  void before_grad_ready(std::function<void(const Segment&)> hook) { watch_ = std::move(hook); }

  /// Brings copies of the weights in bf16 up to date, which ops then read as factors
  /// (Variable::factor), where activations are bf16 and the backend would round weights in each
  /// call (Backend::reads_rounded_weights); else does nothing. The copies are made at the first
  /// call: from then on whoever changes weights calls this before the next forward pass.
  void round_weights();

  Tensor gradient(int id) override;
  void ready(int id) override;

 private:
  void place_buffers(std::set<std::string>& names);

  Context& context_;
  std::vector<Segment> all_segments_;
  std::vector<Parameter*> parameters_;  // of all_segments_
  size_t trained_ = 0;                  // so many of all_segments_ are not frozen
  std::vector<Buffer*> buffers_;
  Tensor weight_, grad_, buffer_arena_;
  Tensor rounded_;  // weight_ in bf16, if somebody asked for it
  std::map<std::string, Tensor> states_;
  std::function<void(const Segment&)> watch_, hook_;
};

}  // namespace wisp
