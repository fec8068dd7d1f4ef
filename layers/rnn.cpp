#include "layers/rnn.h"

#include "layers/init.h"

namespace wisp {

Rnn::Rnn(int64_t inputs, int64_t hidden, const RnnOptions& options) : cell_(options.cell) {
  const RnnSpec spec{.cell = options.cell, .inputs = inputs, .hidden = hidden, .rows = {}};
  WISP_CHECK(inputs > 0 && hidden > 0, "rnn: ", inputs, " inputs and ", hidden,
             " units, expected positive numbers");
  const int64_t gates = Shape{spec.gates(), hidden}.numel();  // throws if too many
  const Init init = options.init_range > 0.0 ? Init{Init::Kind::uniform, options.init_range}
                                             : uniform_for(hidden);
  for (int64_t d = 0; d < options.directions; ++d) {
    const std::string layer = concat("_l", options.index, d == 0 ? "" : "_reverse");
    directions_.push_back({parameter("weight_ih" + layer, {gates, inputs}, init, true, "rnn"),
                           parameter("weight_hh" + layer, {gates, hidden}, init, true, "rnn"),
                           parameter("bias_ih" + layer, {gates}, init, false, "bias"),
                           parameter("bias_hh" + layer, {gates}, init, false, "bias")});
  }
}

RnnResult Rnn::operator()(const Variable& x, const std::vector<int64_t>& rows,
                          const RnnState& before) const {
  std::vector<RnnParameters> parameters;
  for (const Direction& d : directions_)
    parameters.push_back(
        {d.input.variable, d.recurrent.variable, d.input_bias.variable, d.recurrent_bias.variable});
  return rnn(cell_, x, rows, parameters, before);
}

}  // namespace wisp
