// Tests of recurrent layers against PyTorch and numbers by hand, and of their states.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/ops.h"
#include "tests/support/error_of.h"
#include "tests/support/leaves.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// sin(phase + 0.7 i) times `scale`.
Tensor wave(Shape shape, double phase, double scale = 1.0) {
  std::vector<double> numbers(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = scale * std::sin(phase + 0.7 * static_cast<double>(i));
  return tensor(shape, numbers);
}

double sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

std::vector<double> row_sums(const Tensor& state) {
  const std::vector<double> all = values(state);
  const auto width = static_cast<size_t>(state.shape()[2]);
  std::vector<double> sums;
  for (size_t at = 0; at < all.size(); at += width)
    sums.push_back(
        sum({all.begin() + static_cast<long>(at), all.begin() + static_cast<long>(at + width)}));
  return sums;
}

/// Results of PyTorch (torch.nn.{RNN, LSTM, GRU} 2.15.0 in f64) for one bidirectional layer of 3
/// inputs and 2 units over sequences of 3, 2 and 1 positions.
struct TorchCase {
  std::string name;
  RnnCell cell;
  std::vector<double> y_first, y_last;
  double y_sum;
  std::vector<double> h;  // by direction and sequence, summed over units
  std::vector<double> dx_first, dx_last;
  std::vector<double> d_first, d_last, d_sum;  // by parameter: first and last element, sum
};

const TorchCase kTorch[] = {
    {"Tanh",
     RnnCell::tanh,
     {0.919167831, -0.995204086, 0.728206026, 0.998998509},
     {-0.912199239, -0.299006898, 0.981496873, -0.877556645},
     4.167595488,
     {-1.211206138, -0.696581268, -1.299114787, 1.727204535, 1.727465095, 1.869251199},
     {0.175893636, 0.149427079, 0.052682632},
     {-0.154219483, 0.183916305, 0.435553381},
     {-0.315811163, -0.928672770, -0.562343465, -0.562343465, -0.220959840, -0.770609507,
      -0.516707344, -0.516707344},
     {-0.508307863, -0.780804528, 0.589390653, 0.589390653, -0.120142738, 0.200257282, -0.056843150,
      -0.056843150},
     {-0.335148915, -3.126493928, 0.027047187, 0.027047187, -1.519588874, 0.103948571, -0.573550495,
      -0.573550495}},
    {"Lstm",
     RnnCell::lstm,
     {-0.184224320, 0.284734967, 0.031900925, -0.751523505},
     {-0.131537404, 0.289267008, -0.210265473, -0.149553149},
     -1.335374628,
     {0.157729604, 0.408306708, 0.133856903, -0.719622580, -0.305650617, -0.087831760},
     {-0.043738087, -0.293936561, -0.405892078},
     {-0.082892725, 0.064410323, 0.181420189},
     {0.026906866, -0.075142492, 0.064780614, 0.064780614, -0.003381320, -0.013909400, -0.049237327,
      -0.049237327},
     {-0.072419812, -0.035633162, -0.063898932, -0.063898932, 0.146018767, -0.133963447,
      0.103755287, 0.103755287},
     {0.572284155, 0.138132371, 0.328092444, 0.328092444, -0.177560260, -0.616791806, 0.487202747,
      0.487202747}},
    {"Gru",
     RnnCell::gru,
     {-0.437919855, 0.584125636, 0.491212668, -0.961305043},
     {-0.310241285, 0.773012612, -0.954296546, -0.858898324},
     -0.965857187,
     {0.462771327, 0.740744410, 0.874200769, -0.470092375, -0.904218094, 0.718794695},
     {0.030012624, -0.269804134, -0.442727792},
     {0.091438359, 0.130028531, 0.107464254},
     {0.022640052, 0.019318810, 0.045926450, 0.045926450, 0.002233758, 0.006189107, 0.004001400,
      0.004001400},
     {-0.704582807, -0.112033643, -0.091093347, 0.128741346, -0.430725027, -0.047371843,
      0.382202232, 0.271597897},
     {-2.055554448, 0.234097280, 0.330601577, 0.171549167, 0.364332521, -0.635611713, 0.738940976,
      0.690480407}},
};

class RnnBesideTorch : public testing::TestWithParam<std::tuple<TorchCase, Library>> {};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-9) << what << " " << i;  // printed with 9 digits
}

std::vector<double> row(const Tensor& matrix, int64_t index) {
  return values(matrix.rows(index, index + 1));
}

TEST_P(RnnBesideTorch, GivesItsOutputsStatesAndGradients) {
  const auto& [torch, library] = GetParam();
  const RnnSpec spec{torch.cell, 3, 2, 2, {3, 2, 1}};
  const int64_t gates = spec.gates() * spec.hidden;
  TestContext worker({.library = library});
  Leaves leaves;
  const Variable x = leaves.make(worker.context, wave({6, 3}, 0.5));
  std::vector<RnnParameters> parameters;
  for (int d = 0; d < 2; ++d) {
    const auto make = [&](Shape shape, int i) {
      return leaves.make(worker.context, wave(shape, 1.0 + 4 * d + i, 0.8));
    };
    parameters.push_back(
        {make({gates, 3}, 0), make({gates, 2}, 1), make({gates}, 2), make({gates}, 3)});
  }
  RnnState before{wave({2, 3, 2}, 0.3), {}};
  if (torch.cell == RnnCell::lstm) before.c = wave({2, 3, 2}, 0.9);
  const RnnResult result = rnn(torch.cell, x, spec.rows, parameters, before);

  const Tensor y = result.y.value();
  expect_near(row(y, 0), torch.y_first, "y of the first row");
  expect_near(row(y, 5), torch.y_last, "y of the last row");
  EXPECT_NEAR(sum(values(y)), torch.y_sum, 1e-8);
  expect_near(row_sums(result.after.h), torch.h, "h");
  if (torch.cell == RnnCell::lstm) {
    expect_near(row_sums(result.after.c),
                {0.091794647, 0.551539374, 0.102001303, -1.091922751, -1.489499762, 0.036796220},
                "c");
  }

  const Variable flat = reshape(result.y, {1, 24});
  backward(reshape(linear(flat, Variable(worker.context, wave({1, 24}, 2.0)), {}), {}));
  expect_near(row(leaves.gradients()[0], 0), torch.dx_first, "dx of the first row");
  expect_near(row(leaves.gradients()[0], 5), torch.dx_last, "dx of the last row");
  std::vector<double> first, last, sums;
  for (size_t i = 1; i < leaves.gradients().size(); ++i) {
    const std::vector<double> gradient = values(leaves.gradients()[i]);
    first.push_back(gradient.front());
    last.push_back(gradient.back());
    sums.push_back(sum(gradient));
  }
  expect_near(first, torch.d_first, "first element of the gradient of parameter");
  expect_near(last, torch.d_last, "last element of the gradient of parameter");
  expect_near(sums, torch.d_sum, "sum of the gradient of parameter");
}

INSTANTIATE_TEST_SUITE_P(Rnn, RnnBesideTorch,
                         testing::Combine(testing::ValuesIn(kTorch),
                                          testing::Values(Library::reference, Library::kernels)),
                         [](const auto& tested) {
                           const bool kernels = std::get<1>(tested.param) == Library::kernels;
                           return std::get<0>(tested.param).name + (kernels ? "Kernels" : "");
                         });

/// Parameters of a layer: all recurrent weights are `recurrent`, and the recurrent biases are 0.
RnnParameters layer(Context& context, const Tensor& input, double recurrent,
                    const std::vector<double>& bias) {
  const int64_t gates = input.shape()[0];
  return {Variable(context, input), Variable(context, full({gates, 1}, recurrent)),
          Variable(context, tensor({gates}, bias)), Variable(context, full({gates}, 0.0))};
}

TEST(Rnn, OneLstmUnitByHand) {
  TestContext worker;
  // i = s(0) = 1/2, f = s(ln 3) = 3/4, g = tanh(x), o = s(0) = 1/2; no recurrence
  const RnnParameters unit =
      layer(worker.context, tensor({4, 1}, {0, 0, 1, 0}), 0.0, {0, std::log(3.0), 0, 0});
  const Variable x(worker.context, tensor({2, 1}, {0.5, -1.0}));
  const RnnState before{full({1, 1, 1}, 0.0), full({1, 1, 1}, 2.0)};
  const RnnResult result = rnn(RnnCell::lstm, x, {1, 1}, {unit}, before);
  const double c1 = 0.75 * 2.0 + 0.5 * std::tanh(0.5);
  const double c2 = 0.75 * c1 + 0.5 * std::tanh(-1.0);
  expect_near(values(result.y.value()), {0.5 * std::tanh(c1), 0.5 * std::tanh(c2)}, "y");
  expect_near(values(result.after.c), {c2}, "c");
}

TEST(Rnn, AWindowInTwoPartsWithItsStateIsTheWindow) {
  for (const RnnCell cell : {RnnCell::tanh, RnnCell::lstm, RnnCell::gru}) {
    TestContext worker;
    const RnnSpec spec{cell, 3, 5, 1, {}};
    const int64_t gates = spec.gates() * spec.hidden;
    const auto constant = [&](Shape shape, double phase) {
      return Variable(worker.context, wave(shape, phase));
    };
    const std::vector<RnnParameters> layer{{constant({gates, 3}, 1), constant({gates, 5}, 2),
                                            constant({gates}, 3), constant({gates}, 4)}};
    const Variable x = constant({8, 3}, 5);
    const RnnResult whole = rnn(cell, x, {2, 2, 2, 2}, layer);
    const RnnResult head = rnn(cell, rows(x, 0, 2), {2}, layer);
    const RnnResult tail = rnn(cell, rows(x, 2, 8), {2, 2, 2}, layer, head.after);
    expect_near(values(whole.y.value().rows(0, 2)), values(head.y.value()), "head");
    expect_near(values(whole.y.value().rows(2, 8)), values(tail.y.value()), "tail");
    expect_near(values(whole.after.h), values(tail.after.h), "h");
    if (cell == RnnCell::lstm) expect_near(values(whole.after.c), values(tail.after.c), "c");
  }
}

TEST(Rnn, RefusesWhatDoesNotFit) {
  TestContext worker;
  const RnnParameters unit = layer(worker.context, tensor({4, 1}, {0, 0, 1, 0}), 0.0, {0, 0, 0, 0});
  const Variable x(worker.context, full({3, 1}, 0.0));
  const auto error = [&](RnnCell cell, std::vector<int64_t> rows, RnnState before = {}) {
    return error_of([&] { rnn(cell, x, rows, {unit}, before); });
  };
  EXPECT_EQ(error(RnnCell::lstm, {1, 2}),
            "lstm: 2 sequences reach position 1 and 1 the one before, expected the longest first");
  EXPECT_EQ(error(RnnCell::lstm, {2, 2}), "lstm: input (3, 1), expected (4, 1)");
  EXPECT_EQ(error(RnnCell::lstm, {}), "lstm: no sequences");
  EXPECT_EQ(error(RnnCell::gru, {2, 1}), "gru: input weight (4, 1) f64, expected (3, 1) f64");
  EXPECT_EQ(error(RnnCell::lstm, {2, 1}, {full({1, 3, 1}, 0.0), {}}),
            "lstm: state (1, 3, 1) f64, expected (1, 2, 1) f64");
}

}  // namespace
}  // namespace wisp
