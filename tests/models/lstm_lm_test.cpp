#include "models/lstm_lm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/error_of.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

Facts text_of(int64_t words) {
  return {.inputs = {{.name = "tokens", .sample = {0}, .dtype = DType::i32}}, .classes = words};
}

int64_t parameter_count(const LstmLmOptions& options, int64_t words) {
  LstmLm model(options, text_of(words));
  int64_t count = 0;
  for (const Parameter* parameter : model.parameters()) count += parameter->shape.numel();
  return count;
}

TEST(LstmLm, HasThePapersParameterCounts) {
  // Zaremba et al. 2014, in PyTorch with both bias vectors
  EXPECT_EQ(parameter_count({.layers = 2, .units = 200}, 10'000), 4'653'200);
  EXPECT_EQ(parameter_count({.layers = 2, .units = 650}, 10'000), 19'780'400);
  EXPECT_EQ(parameter_count({.layers = 2, .units = 1500}, 10'000), 66'034'000);
  // Lin et al. 2018
  EXPECT_EQ(parameter_count({.layers = 2, .units = 1500, .tied = true}, 10'000), 51'034'000);
  // Vogels et al. 2019, with their vocabulary and with WikiText-2's own
  EXPECT_EQ(parameter_count({.layers = 3, .units = 650, .tied = true}, 28'869), 28'949'319);
  EXPECT_EQ(parameter_count({.layers = 3, .units = 650, .tied = true}, 33'278), 31'819'578);
}

/// Tokens 0, 3, 6, … in the shape (positions, columns). Each target is its token + 1.
Batch window(int64_t positions, int64_t columns, int64_t words) {
  Tensor tokens({positions, columns}, DType::i32), targets({positions * columns}, DType::i32);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data<int32_t>()[i] = static_cast<int32_t>(3 * i % words);
    targets.data<int32_t>()[i] = static_cast<int32_t>((3 * i + 1) % words);
  }
  return {.inputs = {tokens},
          .targets = targets,
          .samples = sample_ids(tokens.numel()),
          .count = tokens.numel()};
}

struct Placed {
  explicit Placed(const LstmLmOptions& options, TestContextOptions worker_options = {})
      : worker(worker_options),
        model(options, text_of(11)),
        parameters(worker.context, model.parameters(), model.buffers()) {}

  Carry zeros(int64_t columns) const {
    Carry carry;
    for (const Shape& column : model.carried())
      carry.push_back(worker.context.zeros(column.stacked(columns), worker.context.compute));
    return carry;
  }

  TestContext worker;
  LstmLm model;
  FlatParameters parameters;
};

TEST(LstmLm, NamesItsParametersAsPyTorchsExample) {
  Placed placed({.layers = 2, .units = 4});
  std::vector<std::string> names;
  for (const Segment& segment : placed.parameters.segments()) names.push_back(segment.name);
  // the order in which gradients become ready
  const std::vector<std::string> expected{
      "decoder.bias",     "decoder.weight",   "rnn.bias_hh_l1", "rnn.bias_ih_l1",
      "rnn.weight_hh_l1", "rnn.weight_ih_l1", "rnn.bias_hh_l0", "rnn.bias_ih_l0",
      "rnn.weight_hh_l0", "rnn.weight_ih_l0", "encoder.weight"};
  EXPECT_EQ(names, expected);
  for (const Segment& segment : placed.parameters.segments())
    EXPECT_EQ(segment.decay, segment.shape.rank() > 1) << segment.name;
}

TEST(LstmLm, ATiedWeightHasBothNames) {
  Placed placed({.layers = 1, .units = 4, .tied = true});
  EXPECT_EQ(placed.model.exchange_names("encoder.weight"),
            (std::vector<std::string>{"encoder.weight", "decoder.weight"}));
  EXPECT_EQ(placed.model.exchange_names("decoder.bias"), std::vector<std::string>{"decoder.bias"});
  for (const Segment& segment : placed.parameters.segments())
    EXPECT_NE(segment.name, "decoder.weight");
}

TEST(LstmLm, TiedGradientsAreReadyWhenBothUsesAreDone) {
  Placed placed({.layers = 1, .units = 4, .tied = true});
  std::vector<std::string> ready;
  placed.parameters.on_grad_ready([&](const Segment& segment) { ready.push_back(segment.name); });
  backward(placed.model.forward(placed.worker.context, window(3, 2, 11), placed.zeros(2)).loss);
  ASSERT_EQ(ready.size(), placed.parameters.segments().size());
  EXPECT_EQ(ready.front(), "decoder.bias");
  EXPECT_EQ(ready.back(), "encoder.weight");
}

TEST(LstmLm, StartsAsItsOptionsSay) {
  Placed zaremba({.layers = 1, .units = 4, .init_range = 0.05});
  for (const double weight : values(zaremba.parameters.weight())) EXPECT_LE(std::abs(weight), 0.05);
  Placed torch({.layers = 1, .units = 4});
  for (const Segment& segment : torch.parameters.segments()) {
    double largest = 0;
    for (const double w : values(FlatParameters::view(torch.parameters.weight(), segment)))
      largest = std::max(largest, std::abs(w));
    const bool recurrent = segment.name.rfind("rnn", 0) == 0;
    const double bound = recurrent ? 0.5 : segment.name == "decoder.bias" ? 0.0 : 0.1;
    EXPECT_LE(largest, bound) << segment.name;
    EXPECT_GE(largest, 0.8 * bound) << segment.name;
  }
}

TEST(LstmLm, CarriesItsStateFromWindowToWindow) {
  for (const RnnCell cell : {RnnCell::lstm, RnnCell::gru}) {
    Placed placed({.cell = cell, .layers = 2, .units = 4});
    EXPECT_EQ(placed.model.carried().size(), cell == RnnCell::lstm ? 4u : 2u);
    const Batch whole = window(4, 2, 11);
    Batch head = whole, tail = whole;
    head.inputs[0] = whole.inputs[0].rows(0, 1);
    tail.inputs[0] = whole.inputs[0].rows(1, 4);
    head.targets = tail.targets = {};
    const auto logits = [&](const Batch& batch, const Carry& before) {
      return placed.model.forward(placed.worker.context, batch, before);
    };
    const Step all = logits(whole, placed.zeros(2));
    const Step first = logits(head, placed.zeros(2));
    const Step rest = logits(tail, first.after);
    std::vector<double> joined = values(first.output.value());
    for (const double logit : values(rest.output.value())) joined.push_back(logit);
    const std::vector<double> expected = values(all.output.value());
    ASSERT_EQ(joined.size(), expected.size());
    for (size_t i = 0; i < joined.size(); ++i) EXPECT_NEAR(joined[i], expected[i], 1e-12);
    EXPECT_EQ(values(rest.after[0]), values(all.after[0]));
  }
}

TEST(LstmLm, TheSumOverTimeWeighsGradientsByTheWindow) {
  Placed mean({.layers = 1, .units = 4}), sum({.layers = 1, .units = 4, .sum_over_time = true});
  const Batch batch = window(5, 2, 11);
  const Step a = mean.model.forward(mean.worker.context, batch, mean.zeros(2));
  const Step b = sum.model.forward(sum.worker.context, batch, sum.zeros(2));
  EXPECT_EQ(values(a.loss.value()), values(b.loss.value()));  // the reported loss is per token
  EXPECT_EQ(a.weight, 1.0);
  EXPECT_EQ(b.weight, 5.0);
}

TEST(LstmLm, PerplexityIsThatOfTheMeanLoss) {
  Placed placed({.layers = 1, .units = 4});
  placed.parameters.weight().clear();  // makes all words equally likely
  const Batch batch = window(3, 2, 11);
  const Tensor sums = tensor({1, 2}, {0, 0});
  const Step step = placed.model.forward(placed.worker.context, batch, placed.zeros(2));
  placed.model.measure(step, batch, sums);
  EXPECT_NEAR(placed.model.metrics()[0].of_mean(values(sums)[0] / values(sums)[1]), 11.0, 1e-9);
  EXPECT_EQ(placed.model.metrics()[0].name, "perplexity");
}

TEST(LstmLm, LockedDropoutIsTheSameAtAllPositions) {
  Batch batch = window(4, 2, 11);
  for (int64_t i = 0; i < batch.inputs[0].numel(); ++i) batch.inputs[0].data<int32_t>()[i] = 1;
  // without recurrence, equal inputs and equal choices give equal outputs
  const auto rows_of = [&](bool locked) {
    Placed other({.cell = RnnCell::tanh,
                  .layers = 1,
                  .units = 64,
                  .dropout = 0.5,
                  .locked_dropout = locked});
    other.worker.context.samples = batch.samples;
    for (const Segment& segment : other.parameters.segments()) {
      if (segment.name == "rnn.weight_hh_l0")
        FlatParameters::view(other.parameters.weight(), segment).clear();
    }
    const Tensor logits =
        other.model.forward(other.worker.context, batch, other.zeros(2)).output.value();
    std::set<std::vector<double>> different;
    for (int64_t row = 0; row < 8; ++row) different.insert(values(logits.rows(row, row + 1)));
    return different.size();
  };
  EXPECT_EQ(rows_of(true), 2u);   // a choice for each column
  EXPECT_EQ(rows_of(false), 8u);  // a choice for each column and position
}

TEST(LstmLm, RefusesDataWithoutTokensAndBadOptions) {
  const Facts photos{.inputs = {{"input", {32, 32, 3}}}, .classes = 10};
  EXPECT_NE(error_of([&] { LstmLm({}, photos); }).find("has no tokens"), std::string::npos);
  EXPECT_NE(error_of([] { LstmLm({.units = 0}, text_of(5)); }).find("0 units"), std::string::npos);
  EXPECT_EQ(error_of([] { LstmLm({.layers = int64_t{1} << 40}, text_of(5)); }),
            concat("lstm_lm: 1099511627776 layers of ", LstmLmOptions{}.units,
                   " units, expected 1 to 1000 layers of 1 unit or more"));
  EXPECT_NE(error_of([] {
              LstmLm({.units = std::numeric_limits<int64_t>::max()}, text_of(5));
            }).find("out of memory: a shape of "),
            std::string::npos);
  EXPECT_NE(error_of([] { LstmLm({.dropout = 1.0}, text_of(5)); }).find("a dropout of 1"),
            std::string::npos);
}

}  // namespace
}  // namespace wisp
