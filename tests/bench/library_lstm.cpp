#include "tests/bench/library_lstm.h"

#include <cstring>

#include "core/cpu/onednn_op.h"
#include "core/random.h"

namespace wisp {

using dnnl::memory;
using Tag = memory::format_tag;

memory LibraryLstm::make(const memory::desc& form) {
  memory made(form, engine_);
  std::memset(made.get_data_handle(), 0, form.get_size());
  return made;
}

memory LibraryLstm::random(const memory::desc& form) {
  const memory values({form.dims(), memory::data_type::f32,
                       form.dims().size() == 3   ? Tag::abc
                       : form.dims().size() == 4 ? Tag::abcd
                                                 : Tag::abdec},
                      engine_);
  const Philox philox(1, 0, 0);
  auto* value = static_cast<float*>(values.get_data_handle());
  for (size_t i = 0; i < values.get_desc().get_size() / sizeof(float); ++i)
    value[i] = 0.1f * (philox.uniform(i) - 0.5f);
  memory made = make(form);
  run({copy(values, made)});
  return made;
}

LibraryLstm::Copy LibraryLstm::copy(const memory& from, const memory& to) const {
  return {from, to, dnnl::reorder(from, to)};
}

void LibraryLstm::run(const std::vector<Copy>& copies) {
  for (Copy each : copies) each.primitive.execute(stream_, each.from, each.to);
}

LibraryLstm::LibraryLstm(const RnnSpec& spec, DType dtype) {
  const auto T = static_cast<memory::dim>(spec.rows.size());
  const memory::dim N = spec.sequences(), I = spec.inputs, H = spec.hidden;
  const memory::data_type type = onednn_type(dtype), wide = memory::data_type::f32;
  struct Forms {
    memory::desc x, state, c, wx, wh, bias, y;
  };
  const auto forms = [&](memory::data_type data, memory::data_type weights) {
    return Forms{{{T, N, I}, data, Tag::tnc},          {{1, 1, N, H}, data, Tag::ldnc},
                 {{1, 1, N, H}, wide, Tag::ldnc},      {{1, 1, I, 4, H}, weights, Tag::any},
                 {{1, 1, H, 4, H}, weights, Tag::any}, {{1, 1, 4, H}, wide, Tag::ldgo},
                 {{T, N, H}, data, Tag::tnc}};
  };
  const Forms f = forms(type, type), d = forms(wide, wide);
  const auto direction = dnnl::rnn_direction::unidirectional_left2right;
  const dnnl::lstm_forward::primitive_desc ahead(
      {dnnl::prop_kind::forward_training, direction, f.x, f.state, f.c, f.wx, f.wh, f.bias, f.y,
       f.state, f.c},
      engine_);
  const dnnl::lstm_backward::primitive_desc back({dnnl::prop_kind::backward,
                                                  direction,
                                                  f.x,
                                                  f.state,
                                                  f.c,
                                                  f.wx,
                                                  f.wh,
                                                  f.bias,
                                                  f.y,
                                                  f.state,
                                                  f.c,
                                                  d.x,
                                                  d.state,
                                                  d.c,
                                                  d.wx,
                                                  d.wh,
                                                  d.bias,
                                                  d.y,
                                                  d.state,
                                                  d.c},
                                                 engine_, ahead);
  forward_ = dnnl::lstm_forward(ahead);
  backward_ = dnnl::lstm_backward(back);

  const memory wx = random({{1, 1, I, 4, H}, wide, Tag::ldgoi});
  const memory wh = random({{1, 1, H, 4, H}, wide, Tag::ldgoi});
  forward_arguments_ = {
      {DNNL_ARG_SRC_LAYER, random(ahead.src_layer_desc())},
      {DNNL_ARG_SRC_ITER, random(ahead.src_iter_desc())},
      {DNNL_ARG_SRC_ITER_C, random(ahead.src_iter_c_desc())},
      {DNNL_ARG_WEIGHTS_LAYER, make(ahead.weights_layer_desc())},
      {DNNL_ARG_WEIGHTS_ITER, make(ahead.weights_iter_desc())},
      {DNNL_ARG_BIAS, random(ahead.bias_desc())},
      {DNNL_ARG_DST_LAYER, make(ahead.dst_layer_desc())},
      {DNNL_ARG_DST_ITER, make(ahead.dst_iter_desc())},
      {DNNL_ARG_DST_ITER_C, make(ahead.dst_iter_c_desc())},
      {DNNL_ARG_WORKSPACE, make(ahead.workspace_desc())},
  };
  before_forward_ = {copy(wx, forward_arguments_[DNNL_ARG_WEIGHTS_LAYER]),
                     copy(wh, forward_arguments_[DNNL_ARG_WEIGHTS_ITER])};

  backward_arguments_ = forward_arguments_;
  const Arguments own = {
      {DNNL_ARG_WEIGHTS_LAYER, make(back.weights_layer_desc())},
      {DNNL_ARG_WEIGHTS_ITER, make(back.weights_iter_desc())},
      {DNNL_ARG_DIFF_SRC_LAYER, make(back.diff_src_layer_desc())},
      {DNNL_ARG_DIFF_SRC_ITER, make(back.diff_src_iter_desc())},
      {DNNL_ARG_DIFF_SRC_ITER_C, make(back.diff_src_iter_c_desc())},
      {DNNL_ARG_DIFF_WEIGHTS_LAYER, make(back.diff_weights_layer_desc())},
      {DNNL_ARG_DIFF_WEIGHTS_ITER, make(back.diff_weights_iter_desc())},
      {DNNL_ARG_DIFF_BIAS, make(back.diff_bias_desc())},
      {DNNL_ARG_DIFF_DST_LAYER, random(back.diff_dst_layer_desc())},
      {DNNL_ARG_DIFF_DST_ITER, random(back.diff_dst_iter_desc())},
      {DNNL_ARG_DIFF_DST_ITER_C, random(back.diff_dst_iter_c_desc())},
  };
  for (const auto& [argument, tensor] : own) backward_arguments_[argument] = tensor;
  before_backward_ = {copy(wx, backward_arguments_[DNNL_ARG_WEIGHTS_LAYER]),
                      copy(wh, backward_arguments_[DNNL_ARG_WEIGHTS_ITER])};
  after_backward_ = {copy(backward_arguments_[DNNL_ARG_DIFF_WEIGHTS_LAYER],
                          make({{1, 1, I, 4, H}, wide, Tag::ldgoi})),
                     copy(backward_arguments_[DNNL_ARG_DIFF_WEIGHTS_ITER],
                          make({{1, 1, H, 4, H}, wide, Tag::ldgoi}))};
  for (const int sum :
       {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS})
    sums_.push_back(backward_arguments_[sum]);
}

void LibraryLstm::forward() {
  run(before_forward_);
  forward_.execute(stream_, forward_arguments_);
  stream_.wait();
}

void LibraryLstm::backward() {
  run(before_backward_);
  for (const memory& sum : sums_) std::memset(sum.get_data_handle(), 0, sum.get_desc().get_size());
  backward_.execute(stream_, backward_arguments_);
  run(after_backward_);
  stream_.wait();
}

}  // namespace wisp
