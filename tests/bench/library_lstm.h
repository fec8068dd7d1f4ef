// oneDNN's own LSTM primitives, to compare our recurrent layers with.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "core/rnn.h"

namespace wisp {

/// A layer of one direction whose sequences all have all positions, with tensors of its own, of
/// random numbers. A pass is what a training step needs: weights are new in each step, so both
/// passes put them, (4 hidden, inputs) in f32, in the library's layouts; the gradients of weights,
/// to which the library only adds, in f32, are cleared before and brought back into rows.
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
  std::vector<dnnl::memory> sums_;  // that backward adds to
};

}  // namespace wisp
