// A recurrent language model: an embedding, recurrent layers, and a linear layer over the
// vocabulary. One thread.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/rnn.h"
#include "models/model.h"

namespace wisp {

struct LstmLmOptions {
  RnnCell cell = RnnCell::lstm;
  int64_t layers = 2;
  int64_t units = 200;          // size of each layer and of a word's vector
  double dropout = 0.0;         // before, between and after the layers, not inside them
  bool locked_dropout = false;  // drop equally at all positions of a window
  bool tied = false;            // the embedding's weight is also the output's
  bool sum_over_time = false;   // gradients of the sum of losses over a window, not the mean
  double init_range = 0.0;  // all start uniform in ± this; 0: recurrent layers in ±1 / sqrt(units),
                            // embedding and output in ±0.1, the output's bias at 0
};

/// Maps windows of tokens (T, N) to logits (T N, classes) of the next token, and carries the
/// layers' states. Parameters have the names of PyTorch's word language model example. Sources:
/// Zaremba et al. 2014; tied weights: Press & Wolf 2017, Inan et al. 2017; locked dropout: Gal &
/// Ghahramani 2016.
class LstmLm final : public Model {
 public:
  LstmLm(const LstmLmOptions& options, const Facts& facts);

  Step forward(Context& context, const Batch& batch, const Carry& before) override;
  std::vector<Shape> carried() const override;
  /// Perplexity: e to the power of a token's mean loss.
  std::vector<Metric> metrics() const override;
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override;
  std::vector<std::string> exchange_names(const std::string& name) const override;

 private:
  size_t carried_by_layer() const { return options_.cell == RnnCell::lstm ? 2 : 1; }
  Variable drop(const Variable& x, uint64_t layer, int64_t columns) const;

  const LstmLmOptions options_;
  std::optional<Embedding> encoder_;
  std::deque<Rnn> layers_;
  std::optional<Linear> decoder_;
};

}  // namespace wisp
