// One oneDNN primitive of two inputs and a result, with the changes of layout and type at its
// edges. Used by one thread at a time, with the number of OpenMP threads it was made under.
#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "core/tensor/dtype.h"

namespace wisp {

/// f32 or bf16.
dnnl::memory::data_type onednn_type(DType dtype);

/// The library's own scratchpad belongs to the thread that made the primitive: always ours instead.
dnnl::primitive_attr own_scratchpad();

class OnednnOp {
 public:
  /// A tensor of the primitive: the argument it is, how the caller has it, and how the primitive
  /// wants it.
  struct Edge {
    int argument;
    dnnl::memory::desc caller, library;
  };

  /// `primitive` was made with own_scratchpad(). Throws dnnl::error if the library cannot change
  /// one form into the other.
  OnednnOp(const dnnl::engine& engine, const dnnl::primitive& primitive,
           const dnnl::memory::desc& scratchpad, const Edge& first, const Edge& second,
           const Edge& result);

  /// What run() needs.
  int64_t workspace_bytes(bool accumulate) const;

  /// `accumulate` adds to the result. The inputs are only read (oneDNN's handles know no const).
  /// The workspace is 64-byte aligned.
  void run(const dnnl::stream& stream, std::byte* first, std::byte* second, std::byte* result,
           bool accumulate, std::byte* workspace);

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  struct Reorder {
    dnnl::reorder primitive;
    Arguments arguments;
  };
  /// A tensor of the call: as the caller has it, and as the primitive wants it.
  struct Operand {
    dnnl::memory caller, library;
    int64_t offset = 0;  // of the primitive's copy in the workspace
    bool differs = false;
  };

  Operand operand(const Edge& edge);
  Reorder reorder(const dnnl::memory& from, const dnnl::memory& to, float keep);
  dnnl::memory scratchpad(const dnnl::memory::desc& descriptor);
  void load(const dnnl::stream& stream, const Operand& input, const Reorder& reorder,
            std::byte* data, std::byte* workspace);
  int64_t reserve(int64_t bytes);

  dnnl::engine engine_;
  dnnl::primitive primitive_;
  Arguments arguments_;
  std::vector<dnnl::memory> scratchpads_;  // used one after the other, all at the workspace's start
  int64_t workspace_bytes_ = 0;            // without the copy of the result, which comes last
  Operand first_, second_, result_;
  Reorder load_first_, load_second_, store_, add_;
};

}  // namespace wisp
