#include "core/cpu/onednn_conv.h"

#include <algorithm>

namespace wisp {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

constexpr int64_t kAlignment = 64;

memory::desc any_layout(const memory::desc& like) {
  return {like.dims(), like.data_type(), Tag::any};
}

}  // namespace

/// A convolution in oneDNN's words. Images are N, H, W, C; weights O, kH, kW, I / groups. oneDNN's
/// logical order is N, C, H, W and (G,) O, I, kH, kW.
struct ConvTask {
  memory::desc x, w, y;  // the caller's layouts
  // Asked of the primitive. The direct algorithm is as fast in NHWC as in any layout; Winograd's
  // has one of its own.
  memory::desc asked_x, asked_w, asked_y;
  memory::dims strides, dilates, padding;
  algorithm kind;

  ConvTask(const ConvSpec& s, algorithm chosen)
      : x({s.batch, s.in_channels, s.height, s.width}, memory::data_type::f32, Tag::nhwc),
        y({s.batch, s.out_channels, s.out_height(), s.out_width()}, memory::data_type::f32,
          Tag::nhwc),
        strides{s.stride, s.stride},
        dilates{s.dilation - 1, s.dilation - 1},
        padding{s.pad, s.pad},
        kind(chosen) {
    const int64_t inputs = s.in_channels / s.groups;
    const int64_t outputs = s.out_channels / s.groups;
    memory::dims dims{outputs, inputs, s.kernel_h, s.kernel_w};
    memory::dims steps{s.kernel_h * s.kernel_w * inputs, 1, s.kernel_w * inputs, inputs};
    if (s.groups > 1) {
      dims.insert(dims.begin(), s.groups);
      steps.insert(steps.begin(), outputs * steps.front());
    }
    w = memory::desc(dims, memory::data_type::f32, steps);
    asked_w = any_layout(w);
    asked_x = chosen == algorithm::convolution_winograd ? any_layout(x) : x;
    asked_y = chosen == algorithm::convolution_winograd ? any_layout(y) : y;
  }
};

namespace {

/// The library's own scratchpad belongs to the thread that made the primitive: always ours instead.
dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::convolution_forward::primitive_desc forward_descriptor(const dnnl::engine& engine,
                                                             const ConvTask& t) {
  return {{dnnl::prop_kind::forward_training, t.kind, t.asked_x, t.asked_w, t.asked_y, t.strides,
           t.dilates, t.padding, t.padding},
          own_scratchpad(),
          engine};
}

dnnl::convolution_backward_data::primitive_desc dx_descriptor(const dnnl::engine& engine,
                                                              const ConvTask& t) {
  return {{t.kind, t.asked_x, t.asked_w, t.asked_y, t.strides, t.dilates, t.padding, t.padding},
          own_scratchpad(),
          engine,
          forward_descriptor(engine, t)};
}

dnnl::convolution_backward_weights::primitive_desc dw_descriptor(const dnnl::engine& engine,
                                                                 const ConvTask& t) {
  return {{t.kind, t.asked_x, t.asked_w, t.asked_y, t.strides, t.dilates, t.padding, t.padding},
          own_scratchpad(),
          engine,
          forward_descriptor(engine, t)};
}

/// Whether Winograd's algorithm beats the direct one, the change to its layout and back included
/// (measured with AVX-512, the only one that has it).
bool winograd_pays(const ConvSpec& s) {
  return s.kernel_h == 3 && s.kernel_w == 3 && s.stride == 1 && s.dilation == 1 && s.groups == 1 &&
         s.in_channels >= 32 && s.out_channels >= 32;
}

int64_t bytes_of(const memory::desc& descriptor) {
  return static_cast<int64_t>(descriptor.get_size());
}

}  // namespace

OnednnConv::OnednnConv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec)
    : engine_(engine) {
  if (winograd_pays(spec)) {
    try {
      build(pass, ConvTask(spec, algorithm::convolution_winograd));
      return;
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  build(pass, ConvTask(spec, algorithm::convolution_direct));
}

void OnednnConv::build(ConvPass pass, const ConvTask& t) {
  if (pass == ConvPass::forward) {
    const auto found = forward_descriptor(engine_, t);
    set_primitive(found);
    first_ = operand(DNNL_ARG_SRC, t.x, found.src_desc());
    second_ = operand(DNNL_ARG_WEIGHTS, t.w, found.weights_desc());
    result_ = operand(DNNL_ARG_DST, t.y, found.dst_desc());
  } else if (pass == ConvPass::dx) {
    const auto found = dx_descriptor(engine_, t);
    set_primitive(found);
    first_ = operand(DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc());
    second_ = operand(DNNL_ARG_WEIGHTS, t.w, found.weights_desc());
    result_ = operand(DNNL_ARG_DIFF_SRC, t.x, found.diff_src_desc());
  } else {
    const auto found = dw_descriptor(engine_, t);
    set_primitive(found);
    first_ = operand(DNNL_ARG_SRC, t.x, found.src_desc());
    second_ = operand(DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc());
    result_ = operand(DNNL_ARG_DIFF_WEIGHTS, t.w, found.diff_weights_desc());
  }
  if (first_.differs) load_first_ = reorder(first_.caller, first_.library, 0.0f);
  if (second_.differs) load_second_ = reorder(second_.caller, second_.library, 0.0f);
  if (result_.differs) store_ = reorder(result_.library, result_.caller, 0.0f);
  add_ = reorder(result_.library, result_.caller, 1.0f);
  int64_t scratchpad_bytes = 0;
  for (const memory& one : scratchpads_)
    scratchpad_bytes = std::max(scratchpad_bytes, bytes_of(one.get_desc()));
  reserve(scratchpad_bytes);
  if (first_.differs) first_.offset = reserve(bytes_of(first_.library.get_desc()));
  if (second_.differs) second_.offset = reserve(bytes_of(second_.library.get_desc()));
  result_.offset = workspace_bytes_;
}

template <class Descriptor>
void OnednnConv::set_primitive(const Descriptor& descriptor) {
  primitive_ = dnnl::primitive(descriptor);
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad(descriptor.scratchpad_desc()));
}

memory OnednnConv::scratchpad(const memory::desc& descriptor) {
  return scratchpads_.emplace_back(memory(descriptor, engine_, DNNL_MEMORY_NONE));
}

OnednnConv::Operand OnednnConv::operand(int argument, const memory::desc& caller,
                                        const memory::desc& library) {
  Operand result;
  result.caller = memory(caller, engine_, DNNL_MEMORY_NONE);
  result.library = memory(library, engine_, DNNL_MEMORY_NONE);
  result.differs = caller != library;
  arguments_.emplace(argument, result.library);
  return result;
}

/// to = from + keep · to
OnednnConv::Reorder OnednnConv::reorder(const memory& from, const memory& to, float keep) {
  dnnl::primitive_attr attributes = own_scratchpad();
  if (keep != 0.0f) {
    dnnl::post_ops then;
    then.append_sum(keep);
    attributes.set_post_ops(then);
  }
  const dnnl::reorder::primitive_desc chosen(from, to, attributes);
  return {dnnl::reorder(chosen),
          {{DNNL_ARG_FROM, from},
           {DNNL_ARG_TO, to},
           {DNNL_ARG_SCRATCHPAD, scratchpad(chosen.scratchpad_desc())}}};
}

int64_t OnednnConv::reserve(int64_t bytes) {
  const int64_t offset = workspace_bytes_;
  workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

int64_t OnednnConv::workspace_bytes(bool accumulate) const {
  const bool direct = !result_.differs && !accumulate;
  return workspace_bytes_ + (direct ? 0 : bytes_of(result_.library.get_desc()));
}

void OnednnConv::load(const dnnl::stream& stream, const Operand& input, const Reorder& reorder,
                      float* data, std::byte* workspace) {
  if (!input.differs) return input.library.set_data_handle(data);
  input.caller.set_data_handle(data);
  input.library.set_data_handle(workspace + input.offset);
  reorder.primitive.execute(stream, reorder.arguments);
}

void OnednnConv::run(const dnnl::stream& stream, float* first, float* second, float* result,
                     bool accumulate, std::byte* workspace) {
  for (const memory& one : scratchpads_) one.set_data_handle(workspace);
  load(stream, first_, load_first_, first, workspace);
  load(stream, second_, load_second_, second, workspace);
  const bool direct = !result_.differs && !accumulate;
  void* computed = workspace + result_.offset;
  result_.library.set_data_handle(direct ? result : computed);
  primitive_.execute(stream, arguments_);
  if (direct) return;
  result_.caller.set_data_handle(result);
  const Reorder& store = accumulate ? add_ : store_;
  store.primitive.execute(stream, store.arguments);
}

}  // namespace wisp
