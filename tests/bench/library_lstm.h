// oneDNN's own LSTM primitives, for comparison with Wisp's recurrent layers. One thread.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "core/rnn.h"

namespace wisp {

/// A layer with one direction and random tensors, whose sequences all have the same length. A pass
/// does the work of a training step. Weights are new in each step, so both passes convert them from
/// (4 hidden, inputs) in f32 to the library's layouts. The library only adds to the gradients of
/// weights (f32), so they are cleared before a pass and converted back to rows after it.
class LibraryLstm {
 public:
  LibraryLstm(const RnnSpec& spec, DType dtype);
  void forward();
  void backward();

 private:
  using Arguments = std::unordered_map<int, dnnl::memory>;
  struct Copy {
    dnnl::memory from, to;
    dnnl::reorder primitive;
  };

  dnnl::memory make(const dnnl::memory::desc& form);
  dnnl::memory random(const dnnl::memory::desc& form);
  Copy copy(const dnnl::memory& from, const dnnl::memory& to) const;
  void run(const std::vector<Copy>& copies);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::lstm_forward forward_;
  dnnl::lstm_backward backward_;
  Arguments forward_arguments_, backward_arguments_;
  std::vector<Copy> before_forward_, before_backward_, after_backward_;
  std::vector<dnnl::memory> sums_;  // gradients of weights, to which backward adds
};

}  // namespace wisp
