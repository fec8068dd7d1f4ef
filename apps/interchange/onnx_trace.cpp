#include "apps/interchange/onnx_trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace wisp {
namespace {

constexpr int64_t kSmall = 2, kLarge = 3;  // batch sizes of the passes, without a common divisor

Extent extent_of(int64_t small, int64_t large, const std::string& what) {
  if (small == large) return {small, false};
  WISP_CHECK(small * kLarge == large * kSmall, "onnx: ", what, " is ", small, " in a batch and ",
             large, " in one 1.5 times as large, expected the same or 1.5 times as much");
  return {small / kSmall, true};
}

/// The size of a pass's batch.
struct Size {
  int64_t samples, frames;  // frames: per padded sample

  static Size of(int64_t units, bool padded) {
    return padded ? Size{1, OnnxTrace::kFrames * units} : Size{units, 1};
  }
  Shape shape(const Feed& feed) const {
    if (feed.padded) return feed.sample.with_rows(frames).stacked(samples);
    return feed.is_sequence() ? feed.sample.with_rows(samples).stacked(1)
                              : feed.sample.stacked(samples);
  }
  Tensor lengths() const {
    Tensor lengths({samples}, DType::i64);
    std::fill_n(lengths.data<int64_t>(), samples, frames);
    return lengths;
  }
};

/// A scope in which a context evaluates and logs, in the weights' type.
class Evaluation {
 public:
  Evaluation(Context& context, DType compute, const Tensor& samples, std::vector<LoggedOp>& log)
      : settings_(context.training, context.recording, context.compute, context.samples,
                  context.log),
        before_(settings_) {
    settings_ = std::tuple(false, false, compute, samples, &log);
  }
  ~Evaluation() { settings_ = before_; }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  std::tuple<bool&, bool&, DType&, Tensor&, std::vector<LoggedOp>*&> settings_;
  const std::tuple<bool, bool, DType, Tensor, std::vector<LoggedOp>*> before_;
};

/// One forward pass, with everything that it read and made.
struct Pass {
  Batch batch;
  Carry before;
  std::vector<LoggedOp> log;
  Step step;
};

Pass forward(Context& context, Model& model, DType compute, const Facts& facts, const Size& size) {
  const bool varies = std::ranges::any_of(facts.inputs, &Feed::padded) ||
                      std::ranges::any_of(facts.inputs, &Feed::is_sequence);
  Pass pass{.batch = {.lengths = varies ? size.lengths() : Tensor(),
                      .samples = Tensor({size.samples}, DType::i64),
                      .count = size.samples,
                      .of_worker = size.samples,
                      .of_step = size.samples,
                      .work = size.samples,
                      .begins = true}};
  for (const Feed& feed : facts.inputs)
    pass.batch.inputs.push_back(
        context.zeros(size.shape(feed), feed.dtype == DType::f32 ? compute : feed.dtype));
  for (const Shape& column : model.carried())
    pass.before.push_back(context.zeros(column.stacked(size.samples), compute));
  const Evaluation evaluation(context, compute, pass.batch.samples, pass.log);
  pass.step = model.forward(context, pass.batch, pass.before);
  context.stream.synchronize();
  return pass;
}

/// The numbering of a pass's values, found by variable or by tensor. A tensor that no op made is
/// found by its place in memory, whatever its shape.
class Values {
 public:
  size_t add(const Tensor& tensor) {
    by_place_[place_of(tensor)] = tensors_.size();
    tensors_.push_back(tensor);
    return tensors_.size() - 1;
  }
  void add_end(TracedEnd end, const Tensor& tensor) {
    ends_.push_back(std::move(end));
    add(tensor);
  }
  size_t add(const Variable& result) { return by_node_[result.node().get()] = add(result.value()); }

  std::optional<size_t> find(const Tensor& tensor) const {
    const auto found = by_place_.find(place_of(tensor));
    return found == by_place_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<size_t> find(const Variable& variable) const {
    const auto found = by_node_.find(variable.node().get());
    return found == by_node_.end() ? find(variable.value()) : std::optional(found->second);
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<TracedEnd>& ends() const { return ends_; }

 private:
  using Place = std::tuple<const std::byte*, int64_t, DType>;
  static Place place_of(const Tensor& tensor) {
    return {tensor.raw(), tensor.numel(), tensor.dtype()};
  }

  std::vector<Tensor> tensors_;
  std::vector<TracedEnd> ends_;  // what the first tensors are
  std::map<Place, size_t> by_place_;
  std::map<const autograd::Node*, size_t> by_node_;
};

/// The connections of a pass's ops, as numbers of values, so that two passes can be compared.
struct Wiring {
  std::vector<OpWires> ops;
  std::optional<size_t> logits;
  std::vector<std::optional<size_t>> after;
  bool operator==(const Wiring&) const = default;
};

Wiring wire(const Pass& pass, Values& values) {
  Wiring wiring;
  for (const LoggedOp& op : pass.log) {
    OpWires& wires = wiring.ops.emplace_back();
    wires.name = op.name;
    for (const Variable& input : op.inputs) wires.inputs.push_back(values.find(input));
    wires.output = values.add(op.output);
    for (const Tensor& result : op.more) wires.more.push_back(values.add(result));
  }
  wiring.logits = values.find(pass.step.output);
  for (const Tensor& tensor : pass.step.after) wiring.after.push_back(values.find(tensor));
  return wiring;
}

/// The values that enter a pass from outside.
Values ends_of(const Pass& pass, const FlatParameters& parameters, const Facts& facts) {
  using Kind = TracedEnd::Kind;
  Values values;
  for (size_t i = 0; i < facts.inputs.size(); ++i)
    values.add_end({Kind::input, facts.inputs[i].name}, pass.batch.inputs[i]);
  for (size_t i = 0; i < pass.before.size(); ++i)
    values.add_end({Kind::state, concat(i)}, pass.before[i]);
  for (const Segment& segment : parameters.all_segments())
    values.add_end({Kind::weight, segment.name},
                   FlatParameters::view(parameters.weight(), segment));
  for (const Buffer* buffer : parameters.buffers())
    values.add_end({Kind::weight, buffer->name}, buffer->value);
  return values;
}

void check_after(const Pass& pass, const Wiring& wiring) {
  WISP_CHECK(pass.step.after.size() == pass.before.size(), "onnx: the model left a state of ",
             pass.step.after.size(), " tensors, but Model::carried() declares ",
             pass.before.size());
  for (size_t i = 0; i < pass.before.size(); ++i) {
    const Shape& after = pass.step.after[i].shape();
    WISP_CHECK(after == pass.before[i].shape(), "onnx: the model left a state tensor of ", after,
               ", expected ", pass.before[i].shape(), " by Model::carried()");
    WISP_CHECK(wiring.after[i], "onnx: state ", i, " that the model left, ", after,
               ", is not the result of an op");
  }
}

/// Throws Error if a row of the output ends before the others.
void check_lengths(const Step& step, bool padded) {
  if (!step.lengths.defined()) return;
  WISP_CHECK(padded,
             "onnx: the model gives lengths of its output rows, which a graph cannot compute; "
             "expected rows of full length");
  const Shape& output = step.output.shape();
  WISP_CHECK(step.lengths.numel() == 1 && output.rank() >= 2 &&
                 step.lengths.data<int64_t>()[0] == output[1],
             "onnx: the model gives ", step.lengths.numel(), " lengths for an output ", output,
             " of one sample, expected one length, the output's second extent");
}

/// The ops that `wanted` values depend on, in order.
std::vector<TracedOp> needed(const Wiring& wiring, const Pass& small, const Pass& large,
                             std::set<size_t> wanted) {
  const auto is_wanted = [&](size_t value) { return wanted.contains(value); };
  std::vector<TracedOp> ops;
  for (size_t op = wiring.ops.size(); op-- > 0;) {
    const OpWires& wires = wiring.ops[op];
    if (!is_wanted(wires.output) && std::ranges::none_of(wires.more, is_wanted)) continue;
    for (const std::optional<size_t>& input : wires.inputs)
      if (input) wanted.insert(*input);
    ops.push_back({wires, small.log[op], large.log[op]});
  }
  std::ranges::reverse(ops);
  return ops;
}

}  // namespace

Extents TracedTensor::extents() const {
  WISP_CHECK(small.shape().rank() == large.shape().rank(), "onnx: a tensor is ", small.shape(),
             " in a batch and ", large.shape(), " in a larger one, expected the same rank");
  Extents extents;
  for (int i = 0; i < small.shape().rank(); ++i)
    extents.push_back(extent_of(small.shape()[i], large.shape()[i],
                                concat("extent ", i, " of a tensor ", small.shape())));
  return extents;
}

Extent TracedOp::extent(const std::string& attribute) const {
  return extent_of(small.integer(attribute), large.integer(attribute),
                   concat("the ", attribute, " of ", name));
}

int64_t TracedOp::integer(const std::string& attribute) const {
  const Extent extent = this->extent(attribute);
  WISP_CHECK(!extent.of_batch, "onnx: the ", attribute, " of ", name,
             " grows with the batch, expected the same for each");
  return extent.number;
}

OnnxTrace trace_model(Context& context, Model& model, const FlatParameters& parameters,
                      const Facts& facts) {
  const bool padded = std::ranges::any_of(facts.inputs, &Feed::padded);
  const Pass small = forward(context, model, parameters.dtype(), facts, Size::of(kSmall, padded));
  const Pass large = forward(context, model, parameters.dtype(), facts, Size::of(kLarge, padded));
  Values values = ends_of(small, parameters, facts), larger = ends_of(large, parameters, facts);
  const Wiring wiring = wire(small, values);
  WISP_CHECK(wire(large, larger) == wiring,
             "onnx: the model computes something else in a larger batch, expected the same ops");
  WISP_CHECK(wiring.logits, "onnx: the model's output is no op's result");
  check_lengths(small.step, padded);
  check_after(small, wiring);

  OnnxTrace trace{.padded = padded,
                  .sequence = std::ranges::any_of(facts.inputs, &Feed::is_sequence),
                  .ends = values.ends(),
                  .logits = *wiring.logits};
  for (size_t i = 0; i < values.tensors().size(); ++i)
    trace.values.push_back({values.tensors()[i], larger.tensors()[i]});
  for (const std::optional<size_t>& after : wiring.after) trace.after.push_back(*after);
  std::set<size_t> wanted(trace.after.begin(), trace.after.end());
  wanted.insert(trace.logits);
  trace.ops = needed(wiring, small, large, std::move(wanted));
  return trace;
}

}  // namespace wisp
