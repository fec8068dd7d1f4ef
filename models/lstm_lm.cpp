#include "models/lstm_lm.h"

#include <cmath>

namespace wisp {
namespace {

constexpr double kVectorRange = 0.1;  // default of options.init_range

void check(const LstmLmOptions& options, const Facts& facts) {
  WISP_CHECK(facts.inputs.size() == 1 && facts.inputs[0].is_sequence() &&
                 facts.inputs[0].sample.rank() == 1 && facts.inputs[0].dtype == DType::i32,
             "lstm_lm: the data set has no tokens; expected a text (data.name = ptb, wikitext2, "
             "text)");
  WISP_CHECK(0 < options.layers && options.layers <= kMostRnnLayers && options.units > 0,
             "lstm_lm: ", options.layers, " layers of ", options.units, " units, expected 1 to ",
             kMostRnnLayers, " layers of 1 unit or more");
  WISP_CHECK(options.dropout >= 0.0 && options.dropout < 1.0, "lstm_lm: a dropout of ",
             options.dropout, ", expected a number in [0, 1)");
  WISP_CHECK(options.init_range >= 0.0, "lstm_lm: an init_range of ", options.init_range,
             ", expected 0 or more");
}

std::unique_ptr<Model> make_lstm_lm(Config& config, const Facts& facts) {
  LstmLmOptions options;
  config.bind_choice("model.cell", options.cell, rnn_cells(),
                     "cell of the recurrent layers: lstm, gru or tanh");
  config.bind("model.layers", options.layers, "number of recurrent layers");
  config.bind("model.units", options.units,
              "hidden size of each layer, and size of the word vectors");
  config.bind("model.dropout", options.dropout,
              "dropout before, between and after the layers, in [0, 1) (Zaremba et al. 2014)");
  config.bind("model.locked_dropout", options.locked_dropout,
              "same dropout mask at all positions of a window (Gal & Ghahramani 2016)");
  config.bind("model.tied", options.tied,
              "words' vectors are the output's weights, too (Press & Wolf 2017)");
  config.bind_choice("model.loss", options.sum_over_time,
                     {{"mean", false}, {"sum_over_time", true}},
                     "loss behind the gradients: mean (per token), or sum_over_time (summed over a "
                     "window's positions, for Zaremba's learning rates and clipping bounds)");
  config.bind(
      "model.init_range", options.init_range,
      "bound b of initial weights uniform in ±b, 0 or more; 0: layers in ±1 / sqrt(units), word "
      "vectors and output in ±0.1, output bias 0");
  return std::make_unique<LstmLm>(options, facts);
}

const ModelRegistration lstm_lm_registration("lstm_lm",
                                             "recurrent language model (Zaremba et al. 2014)",
                                             make_lstm_lm);

}  // namespace

LstmLm::LstmLm(const LstmLmOptions& options, const Facts& facts) : options_(options) {
  check(options, facts);
  const double range = options.init_range > 0.0 ? options.init_range : kVectorRange;
  const Init weight{Init::Kind::uniform, range};
  const Init bias = options.init_range > 0.0 ? weight : Init{};
  child("encoder", encoder_.emplace(facts.classes, options.units, weight));
  for (int64_t i = 0; i < options.layers; ++i) {
    const RnnOptions layer{.cell = options.cell, .index = i, .init_range = options.init_range};
    child("rnn", layers_.emplace_back(options.units, options.units, layer));
  }
  if (options.tied) {
    decoder_.emplace(encoder_->weight(), bias);
  } else {
    decoder_.emplace(options.units, facts.classes, weight, bias);
  }
  child("decoder", *decoder_);
}

std::vector<Shape> LstmLm::carried() const {
  return std::vector<Shape>(layers_.size() * carried_by_layer(), Shape{options_.units});
}

Variable LstmLm::drop(const Variable& x, uint64_t layer, int64_t columns) const {
  const Tensor& keys = x.context().samples;
  const bool locked = options_.locked_dropout && keys.defined();
  return dropout(x, options_.dropout, layer, locked ? keys.rows(0, columns) : keys);
}

Step LstmLm::forward(Context&, const Batch& batch, const Carry& before) {
  const Tensor& tokens = batch.inputs[0];
  const int64_t positions = tokens.shape()[0], columns = tokens.shape()[1];
  const std::vector<int64_t> rows(static_cast<size_t>(positions), columns);
  const Shape state{1, columns, options_.units}, carried{columns, options_.units};

  Step step;
  Variable x = (*encoder_)(tokens.reshape({positions * columns}));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Tensor* mine = &before[i * carried_by_layer()];
    RnnState start{mine[0].reshape(state), {}};
    if (options_.cell == RnnCell::lstm) start.c = mine[1].reshape(state);
    const RnnResult result = layers_[i](drop(x, i, columns), rows, start);
    x = result.y;
    step.after.push_back(result.after.h.reshape(carried));
    if (options_.cell == RnnCell::lstm) step.after.push_back(result.after.c.reshape(carried));
  }
  step.output = (*decoder_)(drop(x, layers_.size(), columns), {.wide = true});
  step.loss = cross_entropy(step.output, batch.targets);
  if (options_.sum_over_time) step.weight = static_cast<double>(positions);
  return step;
}

std::vector<Metric> LstmLm::metrics() const {
  return {{.name = "perplexity", .lower_is_better = true, .of_mean = [](double nats) {
             return std::exp(nats);
           }}};
}

void LstmLm::measure(const Step& step, const Batch& batch, const Tensor& sums) const {
  add_mean(step.loss, batch, sums.reshape({2}));
}

std::vector<std::string> LstmLm::exchange_names(const std::string& name) const {
  if (options_.tied && name == "encoder.weight") return {name, "decoder.weight"};
  return {name};
}

}  // namespace wisp
