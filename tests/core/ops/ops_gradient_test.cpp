// Tests of every function of core/ops.h: against central differences, and in bf16 against f64.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "core/ops.h"
#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using Variables = std::vector<Variable>;

GradientCase conv_case(const std::string& what, Shape x, Shape weight, ConvOptions options) {
  return {"conv2d",
          what,
          {random_tensor(x, 1), random_tensor(weight, 2)},
          [options](const Variables& in) { return conv2d(in[0], in[1], options); }};
}

GradientCase biased_conv_case(const std::string& what, Shape x, Shape weight, ConvOptions options) {
  return {"conv2d",
          what,
          {random_tensor(x, 1), random_tensor(weight, 2), random_tensor({weight[0]}, 3)},
          [options](const Variables& in) { return conv2d(in[0], in[1], options, in[2]); }};
}

BatchNormState norm_state(int64_t channels, DType dtype = DType::f64) {
  return {.running_mean = full({channels}, 0.25, dtype),
          .running_var = full({channels}, 2.0, dtype)};
}

/// Inputs x, gamma, beta and, if asked for, a residual.
GradientCase norm_case(const std::string& what, bool relu_on, bool residual, bool training,
                       DType statistics) {
  GradientCase result{
      "batch_norm",
      what,
      {random_tensor({2, 2, 3, 2}, 1), random_tensor({2}, 2), random_tensor({2}, 3)},
      {},
      training};
  if (residual) result.inputs.push_back(random_tensor({2, 2, 3, 2}, 4));
  // the state lives in the closure, because a late stream uses it after the call
  result.call = [relu_on, residual,
                 state = norm_state(2, statistics)](const Variables& in) mutable {
    return batch_norm(in[0], in[1], in[2], state,
                      {.relu = relu_on, .residual = residual ? &in[3] : nullptr});
  };
  return result;
}

GradientCase entropy_case(const std::string& what, double smoothing, const Tensor& shares = {}) {
  return {"cross_entropy",
          what,
          {random_tensor({5, 4}, 1)},
          [smoothing, shares, labels = tensor_of<int32_t>({3, 0, -1, 1, 2})](const Variables& in) {
            return cross_entropy(in[0], labels, smoothing, shares);
          }};
}

/// Sequences of 6 frames (a repeated label), 5, 3 (one frame too few), 3 (no labels) and 1.
GradientCase ctc_case() {
  const Tensor labels = tensor_of<int32_t>({1, 1, 2, 3, 2, -1, 2, 2, 1, -1, -1, -1, 3, -1, -1});
  return {"ctc_loss",
          "Plain",
          {random_tensor({18, 4}, 1)},
          [labels = labels.reshape({5, 3})](const Variables& in) {
            return ctc_loss(in[0], {5, 4, 4, 2, 2, 1}, labels);
          }};
}

/// A layer of 3 inputs and 4 hidden units, over sequences of 3, 2 and 1 positions.
GradientCase rnn_case(const std::string& what, RnnCell cell, int64_t directions,
                      DType activations) {
  const RnnSpec spec{cell, 3, 4, directions, {3, 2, 1}};
  const int64_t gates = spec.gates() * spec.hidden;
  GradientCase result{"rnn", what, {random_tensor({spec.total_rows(), 3}, 1)}, {}};
  for (uint64_t d = 0; d < static_cast<uint64_t>(directions); ++d) {
    const Shape shapes[] = {{gates, 3}, {gates, 4}, {gates}, {gates}};
    for (uint64_t i = 0; i < 4; ++i)
      result.inputs.push_back(random_tensor(shapes[i], 2 + 4 * d + i));
  }
  const Shape state{directions, spec.sequences(), spec.hidden};
  RnnState before{tensor(state, values(random_tensor(state, 20)), activations), {}};
  if (cell == RnnCell::lstm)
    before.c = tensor(state, values(random_tensor(state, 21)), activations);
  result.call = [=](const Variables& in) {
    std::vector<RnnParameters> parameters;
    for (size_t i = 1; i < in.size(); i += 4)
      parameters.push_back({in[i], in[i + 1], in[i + 2], in[i + 3]});
    return rnn(cell, in[0], spec.rows, parameters, before).y;
  };
  return result;
}

template <class Call>
GradientCase unary_case(const std::string& function, const std::string& what, Shape x, Call call) {
  return {
      function, what, {random_tensor(x, 1)}, [call](const Variables& in) { return call(in[0]); }};
}

/// `statistics` is the type of running means and variances, `state` that of recurrent states.
std::vector<GradientCase> gradient_cases(DType statistics = DType::f64, DType state = DType::f64) {
  const Shape image{2, 5, 6, 3};
  const Tensor x = random_tensor({4, 3}, 1);
  const Tensor weight = random_tensor({18, 3}, 2);  // more outputs than one group of bias columns
  return {
      conv_case("Plain", image, {4, 3, 3, 3}, {}),
      conv_case("StridePad", image, {4, 3, 3, 3}, {.stride = 2, .pad = 1}),
      conv_case("Dilation", image, {2, 2, 3, 3}, {.pad = 1, .dilation = 2}),
      conv_case("Groups", {2, 4, 4, 4}, {6, 3, 3, 2}, {.pad = 1, .groups = 2}),
      biased_conv_case("Bias", image, {18, 2, 2, 3}, {}),
      biased_conv_case("UnequalAxesBias", image, {4, 2, 3, 3},
                       {.stride = {1, 2}, .pad = {2, 1}, .dilation = {3, 2}}),
      conv_case("OneByOne", image, {4, 1, 1, 3}, {.stride = 2}),
      norm_case("Plain", false, false, true, statistics),
      norm_case("Relu", true, false, true, statistics),
      norm_case("Residual", false, true, true, statistics),
      norm_case("ReluResidual", true, true, true, statistics),
      norm_case("Evaluation", false, false, false, statistics),
      norm_case("EvaluationReluResidual", true, true, false, statistics),
      {"batch_norm",
       "ItselfAsResidual",
       {random_tensor({5, 2}, 1), random_tensor({2}, 2), random_tensor({2}, 3)},
       [state = norm_state(2, statistics)](const Variables& in) mutable {
         return batch_norm(in[0], in[1], in[2], state, {.relu = true, .residual = &in[0]});
       }},
      unary_case("relu", "Plain", {3, 4}, [](const Variable& v) { return relu(v); }),
      {"add",
       "Plain",
       {x, random_tensor({4, 3}, 2)},
       [](const Variables& in) { return add(in[0], in[1]); }},
      unary_case("tanh", "Plain", {3, 4}, [](const Variable& v) { return tanh(v); }),
      rnn_case("Tanh", RnnCell::tanh, 1, state),
      rnn_case("Lstm", RnnCell::lstm, 1, state),
      rnn_case("LstmBothWays", RnnCell::lstm, 2, state),
      rnn_case("Gru", RnnCell::gru, 1, state),
      rnn_case("GruBothWays", RnnCell::gru, 2, state),
      unary_case("sigmoid", "Plain", {3, 4}, [](const Variable& v) { return sigmoid(v); }),
      unary_case("clipped_relu", "Plain", {3, 40},
                 [](const Variable& v) { return clipped_relu(v, 0.5); }),
      unary_case("pack_frames", "Plain", {3, 2, 4, 2},
                 [](const Variable& v) {
                   return pack_frames(v, {3, 2, 1});
                 }),
      unary_case("pack_frames", "Twice", {2, 1, 3, 2},
                 [](const Variable& v) {
                   return add(pack_frames(v, {2, 2, 1}), pack_frames(v, {2, 2, 1}));
                 }),
      unary_case("unpack_frames", "Plain", {6, 2, 3},
                 [](const Variable& v) {
                   return unpack_frames(v, {3, 2, 1}, 4);
                 }),
      unary_case("swap_last", "Plain", {2, 3, 4}, [](const Variable& v) { return swap_last(v); }),
      unary_case("swap_last", "Twice", {3, 3},
                 [](const Variable& v) { return add(swap_last(v), swap_last(v)); }),
      {"embedding",
       "RepeatedAndUnknownIds",
       {random_tensor({5, 3}, 1)},
       [ids = tensor_of<int32_t>({4, 0, 4, -1, 2})](const Variables& in) {
         return embedding(in[0], ids);
       }},
      unary_case("rows", "Part", {5, 3}, [](const Variable& v) { return rows(v, 1, 4); }),
      unary_case("rows", "Twice", {5, 3},
                 [](const Variable& v) { return add(rows(v, 0, 3), rows(v, 2, 5)); }),
      unary_case("columns", "Part", {2, 3, 5}, [](const Variable& v) { return columns(v, 1, 4); }),
      unary_case("columns", "Twice", {3, 5},
                 [](const Variable& v) { return add(columns(v, 0, 3), columns(v, 2, 5)); }),
      {"join_columns",
       "Parts",
       {x, random_tensor({4, 2}, 2)},
       [](const Variables& in) {
         return join_columns({in[0], in[1], in[0]});
       }},
      {"join_rows",
       "Parts",
       {x, random_tensor({2, 3}, 2)},
       [](const Variables& in) {
         return join_rows({in[0], in[1], in[0]});
       }},
      {"add", "Itself", {x}, [](const Variables& in) { return add(in[0], in[0]); }},
      unary_case("max_pool2d", "Plain", image, [](const Variable& v) { return max_pool2d(v, 2); }),
      unary_case("max_pool2d", "OverlapPad", image,
                 [](const Variable& v) { return max_pool2d(v, 3, {.stride = 2, .pad = 1}); }),
      unary_case("avg_pool2d", "Plain", image, [](const Variable& v) { return avg_pool2d(v, 2); }),
      unary_case("avg_pool2d", "OverlapPad", image,
                 [](const Variable& v) { return avg_pool2d(v, 3, {.stride = 2, .pad = 1}); }),
      unary_case("global_avg_pool", "Plain", image,
                 [](const Variable& v) { return global_avg_pool(v); }),
      unary_case("adaptive_avg_pool", "Overlap", image,
                 [](const Variable& v) {
                   return adaptive_avg_pool(v, {3, 4});
                 }),
      unary_case("adaptive_avg_pool", "MoreThanThereAre", image,
                 [](const Variable& v) {
                   return adaptive_avg_pool(v, {2, 9});
                 }),
      unary_case("adaptive_avg_pool", "Same", image,
                 [](const Variable& v) {
                   return adaptive_avg_pool(v, {5, 6});
                 }),
      unary_case("flatten", "Plain", image, [](const Variable& v) { return flatten(v); }),
      {"linear",
       "Bias",
       {x, weight, random_tensor({18}, 3)},
       [](const Variables& in) { return linear(in[0], in[1], in[2]); }},
      {"linear",
       "Wide",
       {x, weight, random_tensor({18}, 3)},
       [](const Variables& in) { return linear(in[0], in[1], in[2], {.wide = true}); }},
      {"linear",
       "NoBias",
       {x, weight},
       [](const Variables& in) { return linear(in[0], in[1], {}); }},
      unary_case("reshape", "Plain", image,
                 [](const Variable& v) {
                   return reshape(v, {5, 4, 9});
                 }),
      unary_case("widen", "Plain", image, [](const Variable& v) { return widen(v); }),
      unary_case("pad_channels", "Plain", image,
                 [](const Variable& v) { return pad_channels(v, 6, 2); }),
      unary_case("pad_channels", "StrideOnly", image,
                 [](const Variable& v) { return pad_channels(v, 3, 3); }),
      unary_case("dropout", "Half", {3, 7}, [](const Variable& v) { return dropout(v, 0.5, 1); }),
      unary_case("dropout", "Locked", {4, 70},
                 [keys = sample_ids(2)](const Variable& v) { return dropout(v, 0.5, 1, keys); }),
      unary_case("dropout", "ZeroProbability", {3, 7},
                 [](const Variable& v) { return dropout(v, 0.0, 1); }),
      entropy_case("Plain", 0.0),
      entropy_case("Smoothing", 0.1),
      entropy_case("Mixed", 0.1, tensor({5}, {0.75, 0.75, 1, 1, 1}, DType::f32)),
      ctc_case(),
  };
}

class OpsGradient : public testing::TestWithParam<GradientCase> {};

TEST_P(OpsGradient, EqualsCentralDifferences) { expect_gradients(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Ops, OpsGradient, testing::ValuesIn(gradient_cases()),
                         [](const auto& tested) {
                           return tested.param.function + "_" + tested.param.what;
                         });

/// Whether an input of the function is f32 beside bf16 activations.
bool is_parameter(const std::string& function, size_t input) {
  if (function == "cross_entropy" || function == "ctc_loss" || function == "embedding") return true;
  if (function == "batch_norm") return input == 1 || input == 2;
  return input > 0 && (function == "conv2d" || function == "linear" || function == "rnn");
}

/// Compares results in f64 and in bf16 of the same inputs, which are rounded to bf16.
class OpsBf16 : public testing::TestWithParam<size_t> {
 protected:
  static void expect_agreement(size_t index, bool fastest) {
    GradientCase exact = gradient_cases()[index];
    GradientCase rounded = gradient_cases(DType::f32, DType::bf16)[index];
    for (size_t i = 0; i < exact.inputs.size(); ++i) {
      const Shape shape = exact.inputs[i].shape();
      const Tensor coarse = tensor(shape, values(exact.inputs[i]), DType::bf16);
      exact.inputs[i] = tensor(shape, values(coarse));
      rounded.inputs[i] =
          is_parameter(exact.function, i) ? tensor(shape, values(coarse), DType::f32) : coarse;
    }
    expect_bf16_agrees(rounded, exact, fastest);
  }
};

TEST_P(OpsBf16, AgreesWithF64OnTheReference) { expect_agreement(GetParam(), false); }

TEST_P(OpsBf16, AgreesWithF64OnTheFastestBackend) {
  if (!missing_for(DType::bf16).empty()) GTEST_SKIP() << "needs " << missing_for(DType::bf16);
  expect_agreement(GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpsBf16, testing::Range<size_t>(0, gradient_cases().size()),
                         [](const auto& tested) {
                           const GradientCase gradient_case = gradient_cases()[tested.param];
                           return gradient_case.function + "_" + gradient_case.what;
                         });

/// The functions declared in core/ops.h, found by lines that start with a result type.
std::set<std::string> declared_functions() {
  std::ifstream header(WISP_OPS_HEADER);
  std::set<std::string> names;
  for (std::string line; std::getline(header, line);) {
    for (const std::string result : {"Variable ", "RnnResult ", "void "}) {
      if (line.rfind(result, 0) == 0)
        names.insert(line.substr(result.size(), line.find('(') - result.size()));
    }
  }
  return names;
}

TEST(Ops, EveryDeclaredFunctionHasAGradientCase) {
  std::set<std::string> checked{"count_correct", "count_correct_by_class", "count_edits",
                                "count_too_short", "add_mean"};  // functions without a gradient
  for (const GradientCase& gradient_case : gradient_cases()) checked.insert(gradient_case.function);
  EXPECT_EQ(declared_functions(), checked);
}

}  // namespace
}  // namespace wisp
