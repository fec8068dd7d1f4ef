#include "core/parameter.h"

#include <algorithm>
#include <functional>

#include "core/backend.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/copy.h"
#include "core/loops/parallel.h"
#include "core/random.h"

namespace wisp {
namespace {

template <class T>
void fill(T* values, int64_t count, const Init& init, uint64_t seed, const std::string& name) {
  const Philox random(seed, 0, hash_characters(name));
  for (int64_t i = 0; i < count; ++i) {
    double value = init.value;
    if (init.kind == Init::Kind::normal) value *= normal(random, static_cast<uint64_t>(i));
    if (init.kind == Init::Kind::uniform)
      value *= 2.0 * random.uniform(static_cast<uint64_t>(i)) - 1.0;
    values[i] = static_cast<T>(value);
  }
}

struct RoundWeights {
  const float* weight;
  BFloat16* rounded;
  WISP_HD void operator()(int64_t i) const { store(rounded + i, weight[i]); }
};

}  // namespace

std::vector<Parameter*> arena_order(std::vector<Parameter*> parameters) {
  std::ranges::reverse(parameters);
  std::stable_partition(parameters.begin(), parameters.end(), std::not_fn(&Parameter::frozen));
  return parameters;
}

FlatParameters::FlatParameters(Context& context, std::vector<Parameter*> parameters,
                               std::vector<Buffer*> buffers)
    : context_(context),
      parameters_(arena_order(std::move(parameters))),
      buffers_(std::move(buffers)) {
  const DType dtype = wide_of(context.compute);
  const int64_t alignment = 64 / size_of(dtype);
  std::set<std::string> names;
  int64_t offset = 0, trained_end = 0;
  for (const Parameter* parameter : parameters_) {
    WISP_CHECK(names.insert(parameter->name).second, "two parameters are named ", parameter->name);
    all_segments_.push_back({static_cast<int>(all_segments_.size()), parameter->name,
                             parameter->shape, offset, parameter->shape.numel(), parameter->decay,
                             parameter->kind});
    const int64_t numel = (parameter->shape.numel() + alignment - 1) / alignment * alignment;
    offset = Shape{offset + numel}.numel();  // a Shape refuses too many elements
    if (parameter->frozen) continue;
    trained_end = offset;
    ++trained_;
  }
  weight_ = context.zeros({offset}, dtype);
  grad_ = context.zeros({trained_end}, dtype);
  for (const Segment& segment : all_segments_) {
    Parameter& parameter = *parameters_[static_cast<size_t>(segment.id)];
    const Tensor weight = view(weight_, segment);
    write_from_host(context.stream, weight, [&](const Tensor& host) {
      dispatch_float(dtype, "FlatParameters", [&]<class T>(T) {
        fill(host.data<T>(), segment.numel, parameter.init, context.seed, segment.name);
      });
    });
    parameter.variable = parameter.frozen ? Variable(context, weight)
                                          : Variable::leaf(context, weight, *this, segment.id);
  }
  place_buffers(names);
}

void FlatParameters::place_buffers(std::set<std::string>& names) {
  const int64_t alignment = 64 / size_of(dtype());
  std::vector<int64_t> offsets{0};
  for (const Buffer* buffer : buffers_) {
    WISP_CHECK(names.insert(buffer->name).second, "two buffers are named ", buffer->name);
    offsets.push_back(offsets.back() +
                      (buffer->shape.numel() + alignment - 1) / alignment * alignment);
  }
  buffer_arena_ = context_.empty({offsets.back()}, dtype());
  write_from_host(context_.stream, buffer_arena_, [&](const Tensor& host) {
    host.clear();
    dispatch_float(dtype(), "FlatParameters", [&]<class T>(T) {
      for (size_t i = 0; i < buffers_.size(); ++i)
        std::fill_n(host.data<T>() + offsets[i], buffers_[i]->shape.numel(),
                    static_cast<T>(buffers_[i]->initial));
    });
  });
  for (size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i]->value = buffer_arena_.slice(offsets[i], buffers_[i]->shape);
}

int64_t FlatParameters::parameter_count() const {
  int64_t count = 0;
  for (const Segment& segment : segments()) count += segment.numel;
  return count;
}

const Tensor& FlatParameters::state(const std::string& name) {
  Tensor& arena = states_[name];
  if (!arena.defined()) arena = context_.zeros(grad_.shape(), grad_.dtype());
  return arena;
}

std::vector<std::string> FlatParameters::state_names() const {
  std::vector<std::string> names;
  for (const auto& [name, arena] : states_) names.push_back(name);
  return names;
}

void FlatParameters::round_weights() {
  if (context_.compute != DType::bf16 || !context_.backend.reads_rounded_weights()) return;
  if (!rounded_.defined()) {
    rounded_ = context_.empty(weight_.shape(), DType::bf16);
    for (const Segment& segment : all_segments_)
      parameters_[static_cast<size_t>(segment.id)]->variable.keep_factor(view(rounded_, segment));
  }
  parallel_for(context_.stream, weight_.numel(),
               RoundWeights{weight_.data<float>(), rounded_.data<BFloat16>()});
}

Tensor FlatParameters::gradient(int id) {
  return view(grad_, all_segments_[static_cast<size_t>(id)]);
}

void FlatParameters::ready(int id) {
  if (watch_) watch_(all_segments_[static_cast<size_t>(id)]);
  if (hook_) hook_(all_segments_[static_cast<size_t>(id)]);
}

}  // namespace wisp
