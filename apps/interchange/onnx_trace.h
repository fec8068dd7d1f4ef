// A record of a model's ops in evaluation, from two forward passes that differ only in batch size:
// the number of samples, or of one sample's frames. A number that is equal in both does not depend
// on the batch; one that grows is a multiple of the batch size. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/op_log.h"
#include "models/model.h"

namespace wisp {

/// A number, or a multiple of the batch size.
struct Extent {
  int64_t number = 0;
  bool of_batch = false;
  bool operator==(const Extent&) const = default;
};
using Extents = std::vector<Extent>;

/// A tensor, as it is in each pass.
struct TracedTensor {
  Tensor small, large;

  /// Throws Error for an extent that depends on the batch size but is not a multiple of it.
  Extents extents() const;
};

/// An op's name and connections, as indices into OnnxTrace::values.
struct OpWires {
  std::string name;
  std::vector<std::optional<size_t>> inputs;  // none: unknown origin
  size_t output = 0;
  std::vector<size_t> more;  // results beside output, as LoggedOp::more
  bool operator==(const OpWires&) const = default;
};

/// An op, as it is in each pass.
struct TracedOp : OpWires {
  LoggedOp small, large;

  const Shape& shape(size_t input) const { return small.inputs.at(input).shape(); }
  TracedTensor input(size_t i) const {
    return {small.inputs.at(i).value(), large.inputs.at(i).value()};
  }
  TracedTensor result() const { return {small.output.value(), large.output.value()}; }
  /// Throws Error as TracedTensor::extents().
  Extent extent(const std::string& attribute) const;
  /// Throws Error if the attribute depends on the batch size.
  int64_t integer(const std::string& attribute) const;
};

/// A tensor that enters a pass from outside.
struct TracedEnd {
  enum class Kind { input, state, weight } kind;
  std::string name;  // name of a feed, parameter or buffer; number of a state
};

struct OnnxTrace {
  /// Frames of a padded sample per unit of batch size; strides may reduce them to one.
  static constexpr int64_t kFrames = 16;

  bool padded = false;               // one sample with any number of frames
  bool sequence = false;             // one position, with state from earlier ones
  std::vector<TracedTensor> values;  // the ends, then the ops' results
  std::vector<TracedEnd> ends;
  std::vector<TracedOp> ops;  // ops that logits or state depend on, in order
  size_t logits = 0;          // index into values
  std::vector<size_t> after;  // indices of the state handed on

  bool is_weight(size_t value) const {
    return value < ends.size() && ends[value].kind == TracedEnd::Kind::weight;
  }
};

/// Runs the model on zeros: a sequence (a feed whose first extent varies) has one position, and a
/// padded feed has one sample. `context` made the parameters. Throws Error if the ops depend on the
/// batch size, if a state is not the result of an op, and for lengths of output rows unless they
/// cover all frames of one sample.
OnnxTrace trace_model(Context& context, Model& model, const FlatParameters& parameters,
                      const Facts& facts);

}  // namespace wisp
