// A oneDNN primitive of two inputs and a result, with the changes of layout and type before and
// after it. Used by one thread at a time, with the number of OpenMP threads it was made under.
#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor/dtype.h"

namespace wisp {

/// The library's type for f32 or bf16.
dnnl::memory::data_type onednn_type(DType dtype);

/// Attributes for a scratchpad of the caller, because the library's own belongs to the thread that
/// made the primitive.
dnnl::primitive_attr own_scratchpad();

/// The library's instruction set, with the names of ONEDNN_MAX_CPU_ISA.
std::string instruction_set();

class OnednnOp {
 public:
  /// A tensor of the primitive: its argument, its layout for the caller, and its layout for the
  /// primitive.
  struct Edge {
    int argument;
    dnnl::memory::desc caller, library;
  };

  /// `primitive` was made with own_scratchpad(). Throws dnnl::error if the library cannot convert
  /// between the two layouts of an edge.
  OnednnOp(const dnnl::engine& engine, const dnnl::primitive& primitive,
           const dnnl::memory::desc& scratchpad, const Edge& first, const Edge& second,
           const Edge& result);

  /// Bytes of workspace that run() needs.
  int64_t workspace_bytes(bool accumulate) const;

  /// Computes the result; `accumulate` adds to it. The inputs are only read (oneDNN's handles know
  /// no const). The workspace is aligned to 64 bytes.
  void run(const dnnl::stream& stream, std::byte* first, std::byte* second, std::byte* result,
           bool accumulate, std::byte* workspace);

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  struct Reorder {
    dnnl::reorder primitive;
    Arguments arguments;
  };
  /// A tensor of the call in both layouts, the caller's and the primitive's.
  struct Operand {
    dnnl::memory caller, library;
    bool differs = false;
  };
  /// An operand that is read.
  struct Input : Operand {
    Reorder change;      // to the primitive's layout, if that differs
    int64_t offset = 0;  // of the reordered copy in the workspace
  };

  Operand operand(const Edge& edge);
  Reorder reorder(const dnnl::memory& from, const dnnl::memory& to, float keep);
  dnnl::memory scratchpad(const dnnl::memory::desc& descriptor);
  void load(const dnnl::stream& stream, const Input& input, std::byte* data, std::byte* workspace);
  int64_t reserve(int64_t bytes);

  dnnl::engine engine_;
  dnnl::primitive primitive_;
  Arguments arguments_;
  std::vector<dnnl::memory> scratchpads_;  // used in turn, all at the workspace's start
  int64_t workspace_bytes_ = 0;            // without the copy of the result at the end
  Input first_, second_;
  Operand result_;
  Reorder store_, add_;
};

}  // namespace wisp
