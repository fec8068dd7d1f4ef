// What a model computes in evaluation, op by op, found in two forward passes that differ in the
// size of the batch alone, its number of samples or the frames of one: a number that is the same in
// both does not depend on the batch, one that grows with it is a multiple of it. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/op_log.h"
#include "models/model.h"

namespace wisp {

/// A number, or so many times the size of the batch: its samples, or a share of one's frames.
struct Extent {
  int64_t number = 0;
  bool of_batch = false;
  bool operator==(const Extent&) const = default;
};
using Extents = std::vector<Extent>;

/// A tensor in both passes.
struct TracedTensor {
  Tensor small, large;

  /// Throws Error if one of them is no multiple of the size of the batch, but depends on it.
  Extents extents() const;
};

/// An op in both passes.
struct TracedOp {
  LoggedOp small, large;
  std::vector<std::optional<size_t>> inputs;  // among OnnxTrace::values, none for what nobody made
  size_t output = 0;
  std::vector<size_t> more;  // LoggedOp::more

  const std::string& name() const { return small.name; }
  const Shape& shape(size_t input) const { return small.inputs.at(input).shape(); }
  TracedTensor input(size_t i) const {
    return {small.inputs.at(i).value(), large.inputs.at(i).value()};
  }
  TracedTensor result() const { return {small.output.value(), large.output.value()}; }
  /// Throws Error as TracedTensor::extents().
  Extent extent(const std::string& attribute) const;
  /// Throws Error if it depends on the size of the batch.
  int64_t integer(const std::string& attribute) const;
};

/// What goes into a pass from outside.
struct TracedEnd {
  enum class Kind { input, state, weight } kind;
  std::string name;  // the feed's; "0": which of what is carried; the parameter's or buffer's
};

struct OnnxTrace {
  /// A padded sample's frames to a unit of the batch's size: strides may leave one of so many.
  static constexpr int64_t kFrames = 16;

  bool padded = false;               // of one sample that has any number of frames
  bool sequence = false;             // of one position, which others precede
  std::vector<TracedTensor> values;  // of the ends, then the ops' results
  std::vector<TracedEnd> ends;
  std::vector<TracedOp> ops;  // that logits or state depend on, in order
  size_t logits = 0;          // among the values
  std::vector<size_t> after;  // the state that is handed on
};

/// Runs the model on zeros; of a sequence, a feed whose first extent varies, on one position, and
/// if a feed is padded, on one sample. `context` is the one that the parameters were made with.
/// Throws Error if what the model computes depends on the size of the batch, for a state that is no
/// op's result, and for lengths of the output's rows but those of all frames of one sample.
OnnxTrace trace_model(Context& context, Model& model, const FlatParameters& parameters,
                      const Facts& facts);

}  // namespace wisp
