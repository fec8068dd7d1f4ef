// A model of your own that carries state from batch to batch and uses a weight twice: a recurrent
// net that reads characters and predicts the next one. Source: Elman 1990; tied weights: Press &
// Wolf 2017.
#include <cmath>

#include "layers/linear.h"
#include "models/model.h"

namespace wisp::examples {

class CharRnn final : public Model {
 public:
  CharRnn(int64_t width, double dropout, const Facts& facts)
      : width_(width),
        dropout_(dropout),
        table_(parameter("table", {facts.classes, width}, {Init::Kind::uniform, 0.1},
                         /*decay=*/true, "embedding")),
        bias_(parameter("bias", {facts.classes}, {}, /*decay=*/false, "bias")),
        input_(width, width),
        recurrent_(width, width) {
    child("input", input_);
    child("recurrent", recurrent_);
  }

  std::vector<Shape> carried() const override { return {{width_}}; }

  Step forward(Context& context, const Batch& batch, const Carry& before) override {
    const Tensor& characters = batch.inputs[0];  // (T, N)
    const int64_t positions = characters.shape()[0], columns = characters.shape()[1];
    const Variable seen = embedding(table_.variable, characters.reshape({positions * columns}));
    const Variable drive = input_(dropout(seen, dropout_, 0));
    Variable hidden(context, before[0]);  // (N, width)
    std::vector<Variable> states;
    for (int64_t t = 0; t < positions; ++t) {
      hidden = tanh(add(rows(drive, t * columns, (t + 1) * columns), recurrent_(hidden)));
      states.push_back(hidden);
    }
    const Variable told = dropout(join_rows(states), dropout_, 1);
    const Variable logits = linear(widen(told), table_.variable, bias_.variable);
    return {
        .loss = cross_entropy(logits, batch.targets), .output = logits, .after = {hidden.value()}};
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "bits_per_character", .lower_is_better = true, .of_mean = [](double nats) {
               return nats / std::log(2.0);
             }}};
  }
  void measure(const Step& step, const Batch& batch, const Tensor& sums) const override {
    add_mean(step.loss, batch, sums.reshape({2}));
  }
  std::vector<std::string> exchange_names(const std::string& name) const override {
    if (name == "table") return {"encoder.weight", "decoder.weight"};
    return {name == "bias" ? "decoder.bias" : name};
  }

 private:
  int64_t width_;
  double dropout_;
  Parameter& table_;
  Parameter& bias_;
  Linear input_, recurrent_;
};

const ModelRegistration registration(
    "char_rnn", "a recurrent net over characters", [](Config& config, const Facts& facts) {
      int64_t width = 128;
      double dropout = 0.1;
      config.bind("model.width", width, "of the state, and of a character's vector");
      config.bind("model.dropout", dropout, "share of both that is dropped");
      return std::make_unique<CharRnn>(width, dropout, facts);
    });

}  // namespace wisp::examples
