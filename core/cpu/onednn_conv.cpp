#include "core/cpu/onednn_conv.h"

namespace wisp {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

memory::desc any_layout(const memory::desc& like, memory::data_type type) {
  return {like.dims(), type, Tag::any};
}

/// A convolution in oneDNN's words. Images are N, H, W, C; weights O, kH, kW, I / groups. oneDNN's
/// logical order is N, C, H, W and (G,) O, I, kH, kW.
struct ConvTask {
  memory::desc x, w, y;  // the caller's
  // Asked of the primitive. The direct algorithm is as fast in NHWC as in any layout; Winograd's
  // has one of its own, and f32 only.
  memory::desc asked_x, asked_w, asked_dw, asked_y;
  memory::dims strides, dilates, padding;
  algorithm kind;

  ConvTask(const ConvSpec& s, DType images, algorithm chosen)
      : x({s.batch, s.in_channels, s.height, s.width}, onednn_type(images), Tag::nhwc),
        y({s.batch, s.out_channels, s.out_height(), s.out_width()}, onednn_type(images), Tag::nhwc),
        strides{s.stride.h, s.stride.w},
        dilates{s.dilation.h - 1, s.dilation.w - 1},
        padding{s.pad.h, s.pad.w},
        kind(chosen) {
    constexpr auto f32 = memory::data_type::f32;
    const int64_t inputs = s.in_channels / s.groups;
    const int64_t outputs = s.out_channels / s.groups;
    memory::dims dims{outputs, inputs, s.kernel.h, s.kernel.w};
    memory::dims steps{s.kernel.h * s.kernel.w * inputs, 1, s.kernel.w * inputs, inputs};
    if (s.groups > 1) {
      dims.insert(dims.begin(), s.groups);
      steps.insert(steps.begin(), outputs * steps.front());
    }
    w = memory::desc(dims, f32, steps);
    const bool winograd = chosen == algorithm::convolution_winograd;
    asked_w = any_layout(w, winograd ? f32 : onednn_type(images));
    asked_dw = any_layout(w, f32);
    asked_x = winograd ? any_layout(x, f32) : x;
    asked_y = winograd ? any_layout(y, f32) : y;
  }
};

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
  return {{t.kind, t.asked_x, t.asked_dw, t.asked_y, t.strides, t.dilates, t.padding, t.padding},
          own_scratchpad(),
          engine,
          forward_descriptor(engine, t)};
}

/// Whether Winograd's algorithm, in f32, beats the direct one, the change to its layout and back
/// included (measured with AVX-512, the only one that has it). Direct products in bf16 are about
/// twice as fast as in f32.
bool winograd_pays(ConvPass pass, const ConvSpec& s, DType images) {
  if (images == DType::bf16 && pass != ConvPass::dw) return false;
  const int64_t least = images == DType::bf16 ? 64 : 32;
  return s.kernel == 3 && s.stride == 1 && s.dilation == 1 && s.groups == 1 &&
         s.in_channels >= least && s.out_channels >= least;
}

OnednnOp build(const dnnl::engine& engine, ConvPass pass, const ConvTask& t) {
  if (pass == ConvPass::forward) {
    const auto found = forward_descriptor(engine, t);
    return {engine,
            dnnl::primitive(found),
            found.scratchpad_desc(),
            {DNNL_ARG_SRC, t.x, found.src_desc()},
            {DNNL_ARG_WEIGHTS, t.w, found.weights_desc()},
            {DNNL_ARG_DST, t.y, found.dst_desc()}};
  }
  if (pass == ConvPass::dx) {
    const auto found = dx_descriptor(engine, t);
    return {engine,
            dnnl::primitive(found),
            found.scratchpad_desc(),
            {DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc()},
            {DNNL_ARG_WEIGHTS, t.w, found.weights_desc()},
            {DNNL_ARG_DIFF_SRC, t.x, found.diff_src_desc()}};
  }
  const auto found = dw_descriptor(engine, t);
  return {engine,
          dnnl::primitive(found),
          found.scratchpad_desc(),
          {DNNL_ARG_SRC, t.x, found.src_desc()},
          {DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc()},
          {DNNL_ARG_DIFF_WEIGHTS, t.w, found.diff_weights_desc()}};
}

}  // namespace

OnednnOp make_conv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec, DType images) {
  if (winograd_pays(pass, spec, images)) {
    try {
      return build(engine, pass, ConvTask(spec, images, algorithm::convolution_winograd));
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  return build(engine, pass, ConvTask(spec, images, algorithm::convolution_direct));
}

}  // namespace wisp
