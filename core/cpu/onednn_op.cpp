#include "core/cpu/onednn_op.h"

#include <algorithm>
#include <map>

namespace wisp {
namespace {

using dnnl::memory;

constexpr int64_t kAlignment = 64;

int64_t bytes_of(const memory::desc& descriptor) {
  return static_cast<int64_t>(descriptor.get_size());
}

}  // namespace

memory::data_type onednn_type(DType dtype) {
  return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

OnednnOp::OnednnOp(const dnnl::engine& engine, const dnnl::primitive& primitive,
                   const memory::desc& scratchpad_desc, const Edge& first, const Edge& second,
                   const Edge& result)
    : engine_(engine), primitive_(primitive) {
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad(scratchpad_desc));
  first_ = {operand(first), {}, 0};
  second_ = {operand(second), {}, 0};
  result_ = operand(result);
  for (Input* input : {&first_, &second_})
    if (input->differs) input->change = reorder(input->caller, input->library, 0.0f);
  if (result_.differs) store_ = reorder(result_.library, result_.caller, 0.0f);
  add_ = reorder(result_.library, result_.caller, 1.0f);
  int64_t scratchpad_bytes = 0;
  for (const memory& one : scratchpads_)
    scratchpad_bytes = std::max(scratchpad_bytes, bytes_of(one.get_desc()));
  reserve(scratchpad_bytes);
  for (Input* input : {&first_, &second_})
    if (input->differs) input->offset = reserve(bytes_of(input->library.get_desc()));
}

memory OnednnOp::scratchpad(const memory::desc& descriptor) {
  return scratchpads_.emplace_back(memory(descriptor, engine_, DNNL_MEMORY_NONE));
}

OnednnOp::Operand OnednnOp::operand(const Edge& edge) {
  Operand result;
  result.caller = memory(edge.caller, engine_, DNNL_MEMORY_NONE);
  result.library = memory(edge.library, engine_, DNNL_MEMORY_NONE);
  result.differs = edge.caller != edge.library;
  arguments_.emplace(edge.argument, result.library);
  return result;
}

/// A reorder that computes to = from + keep · to.
OnednnOp::Reorder OnednnOp::reorder(const memory& from, const memory& to, float keep) {
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

int64_t OnednnOp::reserve(int64_t bytes) {
  const int64_t offset = workspace_bytes_;
  workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

int64_t OnednnOp::workspace_bytes(bool accumulate) const {
  const bool direct = !result_.differs && !accumulate;
  return workspace_bytes_ + (direct ? 0 : bytes_of(result_.library.get_desc()));
}

void OnednnOp::load(const dnnl::stream& stream, const Input& input, std::byte* data,
                    std::byte* workspace) {
  if (!input.differs) return input.library.set_data_handle(data);
  input.caller.set_data_handle(data);
  input.library.set_data_handle(workspace + input.offset);
  input.change.primitive.execute(stream, input.change.arguments);
}

void OnednnOp::run(const dnnl::stream& stream, std::byte* first, std::byte* second,
                   std::byte* result, bool accumulate, std::byte* workspace) {
  for (const memory& one : scratchpads_) one.set_data_handle(workspace);
  load(stream, first_, first, workspace);
  load(stream, second_, second, workspace);
  const bool direct = !result_.differs && !accumulate;
  result_.library.set_data_handle(direct ? result : workspace + workspace_bytes_);
  primitive_.execute(stream, arguments_);
  if (direct) return;
  result_.caller.set_data_handle(result);
  const Reorder& store = accumulate ? add_ : store_;
  store.primitive.execute(stream, store.arguments);
}

std::string instruction_set() {
  using Isa = dnnl::cpu_isa;
  static const std::map<Isa, std::string> names{
      {Isa::sse41, "SSE41"},
      {Isa::avx, "AVX"},
      {Isa::avx2, "AVX2"},
      {Isa::avx2_vnni, "AVX2_VNNI"},
      {Isa::avx512_core, "AVX512_CORE"},
      {Isa::avx512_core_vnni, "AVX512_CORE_VNNI"},
      {Isa::avx512_core_bf16, "AVX512_CORE_BF16"},
      {Isa::avx512_core_amx, "AVX512_CORE_AMX"},
  };
  const Isa isa = dnnl::get_effective_cpu_isa();
  const auto found = names.find(isa);
  return found == names.end() ? std::to_string(static_cast<int>(isa)) : found->second;
}

}  // namespace wisp
