// One oneDNN convolution with the layout changes at its edges. Used by one thread at a time, with
// the number of OpenMP threads it was made under.
#pragma once

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "core/backend.h"

namespace wisp {

enum class ConvPass { forward, dx, dw };

struct ConvTask;

class OnednnConv {
 public:
  /// Throws dnnl::error if the library has no implementation.
  OnednnConv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec);

  /// What run() needs.
  int64_t workspace_bytes(bool accumulate) const;

  /// forward: y from (x, w); dx: from (dy, w); dw: from (x, dy). `accumulate` adds to the result.
  /// The inputs are only read (oneDNN's handles know no const). The workspace is 64-byte aligned.
  void run(const dnnl::stream& stream, float* first, float* second, float* result, bool accumulate,
           std::byte* workspace);

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  struct Reorder {
    dnnl::reorder primitive;
    Arguments arguments;
  };
  /// A tensor of the call: in the caller's layout, and in the primitive's.
  struct Operand {
    dnnl::memory caller, library;
    int64_t offset = 0;  // of the primitive's copy in the workspace
    bool differs = false;
  };

  void build(ConvPass pass, const ConvTask& task);
  template <class Descriptor>
  void set_primitive(const Descriptor& descriptor);
  Operand operand(int argument, const dnnl::memory::desc& caller,
                  const dnnl::memory::desc& library);
  Reorder reorder(const dnnl::memory& from, const dnnl::memory& to, float keep);
  dnnl::memory scratchpad(const dnnl::memory::desc& descriptor);
  void load(const dnnl::stream& stream, const Operand& input, const Reorder& reorder, float* data,
            std::byte* workspace);
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
