#include "apps/interchange/onnx_export.h"

#include "apps/interchange/onnx_forms.h"
#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

void check_feed(const Feed& feed, bool carries) {
  const Shape& sample = feed.sample;
  const bool known =
      feed.dtype == DType::f32 || feed.dtype == DType::i32 || feed.dtype == DType::i64;
  WISP_CHECK(known, "onnx: input ", feed.name, " is ", name_of(feed.dtype),
             ", expected f32, i32 or i64");
  for (int i = 1; i < sample.rank(); ++i)
    WISP_CHECK(sample[i] > 0, "onnx: extent ", i, " of input ", feed.name, " ", sample,
               " varies, but only the first extent, the positions of a sequence, may vary");
  WISP_CHECK(
      !feed.padded || !carries, "onnx: input ", feed.name, " ", sample,
      " is padded, so a graph reads each sample as a whole, but the model carries state from one "
      "to the next");
  if (!feed.is_sequence()) return;
  WISP_CHECK(
      carries, "onnx: input ", feed.name, " ", sample,
      " is a sequence, which a graph reads one position at a time, but the model carries no state "
      "from one position to the next");
  WISP_CHECK(sample.rank() < 3, "onnx: input ", feed.name, " is a sequence of ", sample,
             ", expected numbers or vectors at each position");
}

/// A number, or the name of an extent that grows with the batch.
std::variant<int64_t, std::string> onnx_extent(const Extent& extent, bool padded) {
  if (!extent.of_batch) return extent.number;
  if (padded) return extent.number == OnnxTrace::kFrames ? "frames" : "positions";
  return extent.number == 1 ? "batch" : concat(extent.number, "*batch");
}

/// An input or output of the graph.
OnnxValue value_of(std::string name, const TracedTensor& tensor, bool padded) {
  OnnxValue value{std::move(name), tensor.small.dtype(), {}};
  const TracedTensor first{tensor.small.reshape(channels_first(tensor.small.shape())),
                           tensor.large.reshape(channels_first(tensor.large.shape()))};
  for (const Extent& extent : first.extents()) value.extents.push_back(onnx_extent(extent, padded));
  return value;
}

std::string name_of_end(const TracedEnd& end, const Model& model) {
  if (end.kind == TracedEnd::Kind::state) return "state_" + end.name;
  return end.kind == TracedEnd::Kind::weight ? model.exchange_names(end.name).front() : end.name;
}

}  // namespace

std::string onnx_model(Context& context, Model& model, const FlatParameters& parameters,
                       const Facts& facts) {
  for (const Feed& feed : facts.inputs) check_feed(feed, !model.carried().empty());
  const OnnxTrace trace = trace_model(context, model, parameters, facts);
  OnnxGraph graph;
  std::vector<std::string> names(trace.values.size());
  for (size_t i = 0; i < trace.ends.size(); ++i) {
    names[i] = name_of_end(trace.ends[i], model);
    if (!trace.is_weight(i))
      graph.inputs.push_back(value_of(names[i], trace.values[i], trace.padded));
  }
  OnnxForms forms(trace, std::move(names), graph);
  for (const TracedOp& op : trace.ops) forms.add(op);
  const auto give = [&](const std::string& name, size_t value) {
    graph.nodes.push_back({"Identity", {forms.name(value)}, name, {}});
    graph.outputs.push_back(value_of(name, trace.values[value], trace.padded));
  };
  give("logits", trace.logits);
  for (size_t i = 0; i < trace.after.size(); ++i)
    give(concat("state_", i, "_after"), trace.after[i]);
  return graph.bytes();
}

}  // namespace wisp
