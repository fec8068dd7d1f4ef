#include "apps/interchange/onnx_trace.h"

#include <algorithm>
#include <functional>
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

template <class Property>
bool any_feed(const Facts& facts, Property property) {
  return std::any_of(facts.inputs.begin(), facts.inputs.end(), std::mem_fn(property));
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
      : context_(context),
        training_(std::exchange(context.training, false)),
        recording_(std::exchange(context.recording, false)),
        compute_(std::exchange(context.compute, compute)),
        samples_(std::exchange(context.samples, samples)),
        log_(std::exchange(context.log, &log)) {}
  ~Evaluation() {
    context_.training = training_;
    context_.recording = recording_;
    context_.compute = compute_;
    context_.samples = samples_;
    context_.log = log_;
  }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Context& context_;
  bool training_, recording_;
  DType compute_;
  Tensor samples_;
  std::vector<LoggedOp>* log_;
};

/// One forward pass, with everything that it read and made.
struct Pass {
  Batch batch;
  Carry before;
  std::vector<LoggedOp> log;
  Step step;
};

Pass forward(Context& context, Model& model, DType compute, const Facts& facts, const Size& size) {
  const bool varies = any_feed(facts, &Feed::padded) || any_feed(facts, &Feed::is_sequence);
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

 private:
  using Place = std::tuple<const std::byte*, int64_t, DType>;
  static Place place_of(const Tensor& tensor) {
    return {tensor.raw(), tensor.numel(), tensor.dtype()};
  }

  std::vector<Tensor> tensors_;
  std::map<Place, size_t> by_place_;
  std::map<const autograd::Node*, size_t> by_node_;
};

/// The connections of a pass's ops, as numbers of values, so that two passes can be compared.
struct Wiring {
  std::vector<std::string> ops;
  std::vector<std::vector<std::optional<size_t>>> inputs;
  std::vector<size_t> outputs;
  std::vector<std::vector<size_t>> more;
  std::optional<size_t> logits;
  std::vector<std::optional<size_t>> after;
  bool operator==(const Wiring&) const = default;
};

Wiring wire(const Pass& pass, Values& values) {
  Wiring wiring;
  for (const LoggedOp& op : pass.log) {
    wiring.ops.push_back(op.name);
    std::vector<std::optional<size_t>>& inputs = wiring.inputs.emplace_back();
    for (const Variable& input : op.inputs) inputs.push_back(values.find(input));
    wiring.outputs.push_back(values.add(op.output));
    std::vector<size_t>& more = wiring.more.emplace_back();
    for (const Tensor& result : op.more) more.push_back(values.add(result));
  }
  wiring.logits = values.find(pass.step.output);
  for (const Tensor& tensor : pass.step.after) wiring.after.push_back(values.find(tensor));
  return wiring;
}

Values ends_of(const Pass& pass, const FlatParameters& parameters) {
  Values values;
  for (const Tensor& input : pass.batch.inputs) values.add(input);
  for (const Tensor& state : pass.before) values.add(state);
  for (const Segment& segment : parameters.all_segments())
    values.add(FlatParameters::view(parameters.weight(), segment));
  for (const Buffer* buffer : parameters.buffers()) values.add(buffer->value);
  return values;
}

std::vector<TracedEnd> names_of_ends(const Pass& pass, const FlatParameters& parameters,
                                     const Facts& facts) {
  std::vector<TracedEnd> ends;
  for (const Feed& feed : facts.inputs) ends.push_back({TracedEnd::Kind::input, feed.name});
  for (size_t i = 0; i < pass.before.size(); ++i)
    ends.push_back({TracedEnd::Kind::state, concat(i)});
  for (const Segment& segment : parameters.all_segments())
    ends.push_back({TracedEnd::Kind::weight, segment.name});
  for (const Buffer* buffer : parameters.buffers())
    ends.push_back({TracedEnd::Kind::weight, buffer->name});
  return ends;
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

/// By op: whether `wanted` values depend on it.
std::vector<bool> needed(const Wiring& wiring, std::set<size_t> wanted) {
  std::vector<bool> result(wiring.ops.size());
  for (size_t op = result.size(); op-- > 0;) {
    const auto is_wanted = [&](size_t value) { return wanted.count(value) > 0; };
    if (!is_wanted(wiring.outputs[op]) &&
        std::none_of(wiring.more[op].begin(), wiring.more[op].end(), is_wanted))
      continue;
    result[op] = true;
    for (const std::optional<size_t>& input : wiring.inputs[op])
      if (input) wanted.insert(*input);
  }
  return result;
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
                   concat("the ", attribute, " of ", name()));
}

int64_t TracedOp::integer(const std::string& attribute) const {
  const Extent extent = this->extent(attribute);
  WISP_CHECK(!extent.of_batch, "onnx: the ", attribute, " of ", name(),
             " grows with the batch, expected the same for each");
  return extent.number;
}

OnnxTrace trace_model(Context& context, Model& model, const FlatParameters& parameters,
                      const Facts& facts) {
  const bool padded = any_feed(facts, &Feed::padded);
  const Pass small = forward(context, model, parameters.dtype(), facts, Size::of(kSmall, padded));
  const Pass large = forward(context, model, parameters.dtype(), facts, Size::of(kLarge, padded));
  Values values = ends_of(small, parameters), larger = ends_of(large, parameters);
  const Wiring wiring = wire(small, values);
  WISP_CHECK(wire(large, larger) == wiring,
             "onnx: the model computes something else in a larger batch, expected the same ops");
  WISP_CHECK(wiring.logits, "onnx: the model's output is no op's result");
  check_lengths(small.step, padded);
  check_after(small, wiring);

  OnnxTrace trace{.padded = padded,
                  .sequence = any_feed(facts, &Feed::is_sequence),
                  .ends = names_of_ends(small, parameters, facts),
                  .logits = *wiring.logits};
  for (size_t i = 0; i < values.tensors().size(); ++i)
    trace.values.push_back({values.tensors()[i], larger.tensors()[i]});
  std::set<size_t> wanted{trace.logits};
  for (const std::optional<size_t>& after : wiring.after) {
    trace.after.push_back(*after);
    wanted.insert(*after);
  }
  const std::vector<bool> keep = needed(wiring, wanted);
  for (size_t op = 0; op < keep.size(); ++op) {
    if (keep[op])
      trace.ops.push_back(
          {small.log[op], large.log[op], wiring.inputs[op], wiring.outputs[op], wiring.more[op]});
  }
  return trace;
}

}  // namespace wisp
