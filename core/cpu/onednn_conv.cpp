#include "core/cpu/onednn_conv.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace wisp {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using Tag = memory::format_tag;

memory::desc any_layout(const memory::desc& like, memory::data_type type) {
  return {like.dims(), type, Tag::any};
}

/// Some taps of each kernel row, and the columns of x under them, with zeros on both sides.
struct Strip {
  int64_t first_tap, taps;
  int64_t first_column, columns, left, right;
};

Strip whole(const ConvSpec& s) { return {0, s.kernel.w, 0, s.width, s.pad.w, s.pad.w}; }

/// The strip of taps [begin, end). It has no columns if the taps meet only padding.
Strip strip_of(const ConvSpec& s, int64_t begin, int64_t end) {
  const int64_t first = begin * s.dilation.w - s.pad.w;
  const int64_t last =
      (s.out_width() - 1) * s.stride.w + (end - 1) * s.dilation.w - s.pad.w;  // inclusive
  const int64_t from = std::max<int64_t>(first, 0);
  const int64_t to = std::min(last + 1, s.width);
  return {begin, end - begin, from, std::max<int64_t>(to - from, 0), from - first, last + 1 - to};
}

/// A convolution in oneDNN's terms. Images are N, H, W, C; weights are O, kH, kW, I / groups.
/// oneDNN's logical order is N, C, H, W and (G,) O, I, kH, kW.
struct ConvTask {
  memory::desc x, w, y;  // the caller's layouts
  // Layouts requested of the primitive. The direct algorithm is as fast in NHWC as in any layout.
  // Winograd's algorithm has a layout of its own, in f32 only.
  memory::desc asked_x, asked_w, asked_dw, asked_y;
  memory::dims strides, dilates, padding_before, padding_after;
  algorithm kind;

  ConvTask(const ConvSpec& s, DType images, algorithm chosen, const Strip& strip)
      : y({s.batch, s.out_channels, s.out_height(), s.out_width()}, onednn_type(images), Tag::nhwc),
        strides{s.stride.h, s.stride.w},
        dilates{s.dilation.h - 1, s.dilation.w - 1},
        padding_before{s.pad.h, strip.left},
        padding_after{s.pad.h, strip.right},
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
    memory::dims part = dims, offset(dims.size());
    part.back() = strip.taps;
    offset.back() = strip.first_tap;
    w = memory::desc(dims, f32, steps).submemory_desc(part, offset);
    const memory::dims images_of_strip{s.batch, s.in_channels, s.height, strip.columns};
    const memory::desc dense_x(images_of_strip, onednn_type(images), Tag::nhwc);
    x = memory::desc({s.batch, s.in_channels, s.height, s.width}, onednn_type(images), Tag::nhwc)
            .submemory_desc(images_of_strip, {0, 0, 0, strip.first_column});
    const bool winograd = chosen == algorithm::convolution_winograd;
    asked_w = any_layout(w, winograd ? f32 : onednn_type(images));
    asked_dw = any_layout(w, f32);
    asked_x = winograd ? any_layout(x, f32) : dense_x;
    asked_y = winograd ? any_layout(y, f32) : y;
  }
};

/// Whether Winograd's algorithm in f32 is faster than the direct one, including the changes of
/// layout (measured with AVX-512, which it requires). Direct products in bf16 are about twice as
/// fast as in f32.
bool winograd_pays(ConvPass pass, const ConvSpec& s, DType images) {
  if (images == DType::bf16 && pass != ConvPass::dw) return false;
  const int64_t least = images == DType::bf16 ? 64 : 32;
  return s.kernel == 3 && s.stride == 1 && s.dilation == 1 && s.groups == 1 &&
         s.in_channels >= least && s.out_channels >= least;
}

/// Whether strips may be faster. With fewer channels than a vector holds, the library's own dx is
/// no faster.
bool strips_pay(ConvPass pass, const ConvSpec& s) {
  return pass == ConvPass::dw || (pass == ConvPass::dx && s.in_channels / s.groups >= 16);
}

/// The library's implementations of a convolution, best first: its own kernel, a matrix of columns
/// of x, or plain loops, which are a hundred times slower. It uses loops where a thread's matrix
/// would be more than 15 times as large as all tensors, its memory limit. Short batches of one or
/// two utterances reach that limit on a CPU without AVX-512.
enum class Way { kernel, matrix, loops };

Way way_of(std::string_view implementation) {
  if (implementation.starts_with("ref")) return Way::loops;
  return implementation.find("gemm") != std::string_view::npos ? Way::matrix : Way::kernel;
}

struct Built {
  OnednnOp op;
  Way way;
};

template <class Descriptor>
Built built(const dnnl::engine& engine, const Descriptor& found, const OnednnOp::Edge& first,
            const OnednnOp::Edge& second, const OnednnOp::Edge& result) {
  const dnnl::primitive primitive(found);
  return {{engine, primitive, found.scratchpad_desc(), first, second, result},
          way_of(found.impl_info_str())};
}

Built build(const dnnl::engine& engine, ConvPass pass, const ConvTask& t) {
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, t.kind, t.asked_x, t.asked_w, t.asked_y, t.strides,
       t.dilates, t.padding_before, t.padding_after},
      own_scratchpad(), engine);
  if (pass == ConvPass::forward)
    return built(engine, forward, {DNNL_ARG_SRC, t.x, forward.src_desc()},
                 {DNNL_ARG_WEIGHTS, t.w, forward.weights_desc()},
                 {DNNL_ARG_DST, t.y, forward.dst_desc()});
  if (pass == ConvPass::dx) {
    const dnnl::convolution_backward_data::primitive_desc found(
        {t.kind, t.asked_x, t.asked_w, t.asked_y, t.strides, t.dilates, t.padding_before,
         t.padding_after},
        own_scratchpad(), engine, forward);
    return built(engine, found, {DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc()},
                 {DNNL_ARG_WEIGHTS, t.w, found.weights_desc()},
                 {DNNL_ARG_DIFF_SRC, t.x, found.diff_src_desc()});
  }
  const dnnl::convolution_backward_weights::primitive_desc found(
      {t.kind, t.asked_x, t.asked_dw, t.asked_y, t.strides, t.dilates, t.padding_before,
       t.padding_after},
      own_scratchpad(), engine, forward);
  return built(engine, found, {DNNL_ARG_SRC, t.x, found.src_desc()},
               {DNNL_ARG_DIFF_DST, t.y, found.diff_dst_desc()},
               {DNNL_ARG_DIFF_WEIGHTS, t.w, found.diff_weights_desc()});
}

/// The fewest strips whose implementation is no worse than `way`; none if there are none. The
/// library's backward kernels support at most 11 to 14 kernel columns. Beyond, it multiplies a
/// matrix of copies of x, about five times as slowly.
std::vector<OnednnOp> build_strips(const dnnl::engine& engine, ConvPass pass, const ConvSpec& s,
                                   DType images, Way way) {
  const int64_t least_taps = way == Way::kernel ? 5 : 1;
  for (int64_t count = 2; s.kernel.w / count >= least_taps; ++count) {
    std::vector<OnednnOp> ops;
    bool worse = false;
    for (int64_t i = 0; i < count && !worse; ++i) {
      const Strip strip = strip_of(s, s.kernel.w * i / count, s.kernel.w * (i + 1) / count);
      if (strip.columns == 0) continue;
      Built part = build(engine, pass, ConvTask(s, images, algorithm::convolution_direct, strip));
      worse = part.way > way;
      ops.push_back(std::move(part.op));
    }
    if (!worse) return ops;
  }
  return {};
}

}  // namespace

std::vector<OnednnOp> make_conv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec,
                                DType images) {
  const Strip all = whole(spec);
  if (winograd_pays(pass, spec, images)) {
    try {
      return {build(engine, pass, ConvTask(spec, images, algorithm::convolution_winograd, all)).op};
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
    }
  }
  Built direct = build(engine, pass, ConvTask(spec, images, algorithm::convolution_direct, all));
  const bool loops = direct.way == Way::loops;
  for (const Way way : {Way::kernel, Way::matrix}) {
    if (way >= direct.way || !(loops || strips_pay(pass, spec))) break;
    std::vector<OnednnOp> strips = build_strips(engine, pass, spec, images, way);
    if (strips.size() > 1) return strips;
  }
  return {std::move(direct.op)};
}

}  // namespace wisp
