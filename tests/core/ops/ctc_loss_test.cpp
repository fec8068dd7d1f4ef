// Tests of the CTC loss against numbers by hand, sums over all paths, and PyTorch.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops.h"
#include "tests/support/error_of.h"
#include "tests/support/leaves.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using Transcripts = std::vector<std::vector<int32_t>>;

/// Labels (N, longest transcript), with -1 after the end of each transcript.
Tensor labels_of(const Transcripts& transcripts) {
  size_t width = 0;
  for (const auto& transcript : transcripts) width = std::max(width, transcript.size());
  std::vector<int32_t> labels;
  for (const auto& transcript : transcripts) {
    labels.insert(labels.end(), transcript.begin(), transcript.end());
    labels.insert(labels.end(), width - transcript.size(), -1);
  }
  return tensor_of(labels).reshape({std::ssize(transcripts), static_cast<int64_t>(width)});
}

struct Outcome {
  double loss;
  std::vector<double> gradient;
};

Outcome outcome_of(const Tensor& logits, const std::vector<int64_t>& rows, const Tensor& labels) {
  TestContext worker({.compute = logits.dtype()});
  Leaves leaves;
  const Variable loss = ctc_loss(leaves.make(worker.context, logits), rows, labels);
  backward(loss);
  return {values(loss.value())[0], values(leaves.gradients()[0])};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << i;
}

class CtcLoss : public testing::TestWithParam<DType> {
 protected:
  /// A few f32 roundings of up to 6e-8 each, of numbers of about 1.
  double tolerance() const { return GetParam() == DType::f32 ? 1e-6 : 1e-12; }
};

INSTANTIATE_TEST_SUITE_P(Types, CtcLoss, testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return name_of(tested.param); });

/// Softmax (1/4, 3/4), then (1/2, 1/2). The paths of "1" are 11, 1-, -1: p = 3/8 + 3/8 + 1/8 = 7/8.
/// The label's posterior is (3/8 + 3/8) / p = 6/7 in the first frame and (3/8 + 1/8) / p = 4/7 in
/// the second, so its gradient is 3/4 - 6/7 = -3/28 and 1/2 - 4/7 = -1/14.
TEST_P(CtcLoss, OneLabelInTwoFramesByHand) {
  const Tensor logits = tensor({2, 2}, {0, std::log(3.0), 5, 5}, GetParam());
  const Outcome found = outcome_of(logits, {1, 1}, labels_of({{1}}));
  EXPECT_NEAR(found.loss, std::log(8.0 / 7.0), tolerance());
  expect_near(found.gradient, {3.0 / 28, -3.0 / 28, 1.0 / 14, -1.0 / 14}, tolerance());
}

/// The labels of a path: equal neighbours are merged, then blanks removed.
std::vector<int32_t> text_of(const std::vector<int32_t>& path) {
  std::vector<int32_t> text;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) text.push_back(path[t]);
  return text;
}

/// The loss and gradient of one sequence by the definition: sums over all paths.
Outcome by_all_paths(const Tensor& logits, const std::vector<int32_t>& transcript) {
  const auto frames = static_cast<size_t>(logits.shape()[0]);
  const auto classes = static_cast<size_t>(logits.shape()[1]);
  std::vector<double> softmax = values(logits);
  for (size_t t = 0; t < frames; ++t) {
    double sum = 0.0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(softmax[t * classes + c]);
    for (size_t c = 0; c < classes; ++c)
      softmax[t * classes + c] = std::exp(softmax[t * classes + c]) / sum;
  }
  double total = 0.0;
  std::vector<double> through(softmax.size());  // sums over paths, for each frame and class
  std::vector<int32_t> path(frames);
  for (bool more = true; more;) {
    if (text_of(path) == transcript) {
      double p = 1.0;
      for (size_t t = 0; t < frames; ++t) p *= softmax[t * classes + static_cast<size_t>(path[t])];
      total += p;
      for (size_t t = 0; t < frames; ++t) through[t * classes + static_cast<size_t>(path[t])] += p;
    }
    size_t t = 0;
    while (t < frames && path[t] + 1 == static_cast<int32_t>(classes)) path[t++] = 0;
    more = t < frames;
    if (more) ++path[t];
  }
  if (total == 0.0) return {0.0, std::vector<double>(softmax.size())};
  for (size_t i = 0; i < softmax.size(); ++i) softmax[i] -= through[i] / total;
  return {-std::log(total), softmax};
}

TEST_P(CtcLoss, IsTheSumOverAllPaths) {
  uint64_t seed = 0;
  for (int64_t frames = 1; frames <= 6; ++frames) {
    for (const Transcripts& transcripts :
         {Transcripts{{1}, {1, 1}, {1, 1, 1}},
          Transcripts{{2}, {1, 2}, {2, 2}, {1, 2, 1}, {2, 1, 1}, {2, 2, 1, 1}},
          Transcripts{
              {3}, {3, 1}, {3, 3}, {1, 2, 3}, {1, 3, 3}, {3, 1, 2, 2}, {1, 2, 3, 1, 2, 3}}}) {
      const int64_t classes = transcripts[0][0] + 1;
      for (const auto& transcript : transcripts) {
        const Tensor logits = random_tensor({frames, classes}, ++seed, GetParam());
        const std::vector<int64_t> rows(static_cast<size_t>(frames), 1);
        const Outcome found = outcome_of(logits, rows, labels_of({transcript}));
        const Outcome expected = by_all_paths(logits, transcript);
        EXPECT_NEAR(found.loss, expected.loss, 10 * tolerance()) << "of up to 10";
        expect_near(found.gradient, expected.gradient, tolerance());
      }
    }
  }
}

/// PyTorch 2.15, ctc_loss(log_softmax(x), reduction="sum", zero_infinity=True) / 4 in f64, with
/// x[i] = 2 sin(0.7 i). The last sequence, 4 4 in two frames, is too short.
TEST_P(CtcLoss, IsPyTorchs) {
  std::vector<double> numbers(90);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = 2.0 * std::sin(0.7 * static_cast<double>(i));
  const Outcome found = outcome_of(tensor({18, 5}, numbers, GetParam()), {4, 4, 3, 3, 2, 1, 1},
                                   labels_of({{1, 1, 2}, {3, 4}, {2, 3, 2, 4}, {4, 4}}));
  EXPECT_NEAR(found.loss, 5.649678311027181, 10 * tolerance());
  const struct {
    size_t row;
    std::vector<double> gradient;
  } torch[] = {{0, {-0.009549090, -0.180758370, 0.092589401, 0.072507786, 0.025210272}},
               {1, {-0.081289943, 0.020554679, 0.016466614, -0.077225723, 0.121494373}},
               {2, {0.049387793, 0.095781213, -0.176673072, 0.025126594, 0.006377472}},
               {3, {0, 0, 0, 0, 0}},
               {8, {-0.045794571, -0.010283088, 0.014785397, 0.012979316, 0.028312946}},
               {17, {-0.079179762, 0.037612676, -0.009765264, 0.015135272, 0.036197078}}};
  for (const auto& expected : torch) {
    const auto begin = found.gradient.begin() + static_cast<long>(5 * expected.row);
    expect_near({begin, begin + 5}, expected.gradient, 1e-7);  // f32, and 9 printed digits
  }
}

/// Knuth's linear congruential generator. The script for PyTorch's numbers used the same one.
class Draws {
 public:
  uint64_t operator()() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return state_ >> 33;
  }
  /// A number in [1, most].
  int64_t up_to(int64_t most) {
    return 1 + static_cast<int64_t>((*this)() % static_cast<uint64_t>(most));
  }
  /// A number in [0, 1).
  double unit() { return static_cast<double>((*this)()) / static_cast<double>(1u << 31); }

 private:
  uint64_t state_ = 1;
};

/// Draws ten sequences of up to 50 frames and up to 21 classes. Each has at most half as many
/// labels as frames (rounded up), plus one, so some are too short. Adds the loss to sums[0], and
/// the gradient weighted by draws to sums[1].
void add_drawn(Draws& draw, DType dtype, double (&sums)[2]) {
  const int64_t classes = 1 + draw.up_to(20);
  std::vector<int64_t> lengths(10);
  for (int64_t& length : lengths) length = draw.up_to(50);
  std::sort(lengths.rbegin(), lengths.rend());
  Transcripts texts;
  for (const int64_t length : lengths) {
    texts.emplace_back(static_cast<size_t>(draw.up_to((length + 1) / 2 + 1)));
    for (int32_t& label : texts.back()) label = static_cast<int32_t>(draw.up_to(classes - 1));
  }
  std::vector<int64_t> rows(static_cast<size_t>(lengths[0]));
  for (const int64_t length : lengths)
    for (int64_t t = 0; t < length; ++t) ++rows[static_cast<size_t>(t)];
  const int64_t frames = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  std::vector<double> logits(static_cast<size_t>(frames * classes));
  for (double& logit : logits) logit = 8.0 * draw.unit() - 4.0;
  const Outcome found =
      outcome_of(tensor({frames, classes}, logits, dtype), rows, labels_of(texts));
  sums[0] += found.loss;
  for (const double gradient : found.gradient) sums[1] += gradient * draw.unit();
}

/// A thousand sequences, with the sums of PyTorch 2.15 as above.
TEST_P(CtcLoss, IsPyTorchsOfAThousandDrawnCases) {
  const double torch[][2] = {
      {621.611286983575, -0.769485196971}, {574.767017703487, -0.061152620760},
      {646.843676999439, 1.427425890715},  {523.132308111491, -0.458987941475},
      {543.326515068707, 0.045103646043},  {535.954872070980, -0.069698175242},
      {590.431596576667, -0.527920180064}, {683.473464729042, 1.615119879646},
      {668.646332070178, -1.143002425604}, {666.860978440146, -0.035920814921}};
  Draws draw;
  for (const auto& expected : torch) {
    double sums[2] = {0.0, 0.0};
    for (int batch = 0; batch < 10; ++batch) add_drawn(draw, GetParam(), sums);
    EXPECT_NEAR(sums[0], expected[0], 1000 * tolerance()) << "of 600";
    EXPECT_NEAR(sums[1], expected[1], 100 * tolerance());
  }
}

TEST_P(CtcLoss, WhatCannotBeAlignedCountsInTheMeanAlone) {
  const std::vector<double> frame{0, std::log(3.0)};
  const auto frames = [&](size_t count) {
    std::vector<double> numbers;
    for (size_t i = 0; i < count; ++i) numbers.insert(numbers.end(), frame.begin(), frame.end());
    return tensor({static_cast<int64_t>(count), 2}, numbers, GetParam());
  };
  const Outcome alone = outcome_of(frames(2), {1, 1}, labels_of({{1}}));
  // Two frames each: two equal labels, which need a blank between them; no labels; one label.
  const Outcome found = outcome_of(frames(6), {3, 3}, labels_of({{1, 1}, {}, {1}}));
  EXPECT_NEAR(found.loss, alone.loss / 3, tolerance());
  const std::vector<double>& g = alone.gradient;
  expect_near(found.gradient, {0, 0, 0, 0, g[0] / 3, g[1] / 3, 0, 0, 0, 0, g[2] / 3, g[3] / 3},
              tolerance());
  EXPECT_EQ(outcome_of(frames(6), {3, 3}, Tensor({3, 0}, DType::i32)).loss, 0.0);
}

TEST_P(CtcLoss, WhatIsTooShortIsCounted) {
  TestContext worker({.compute = GetParam()});
  const Variable logits(worker.context, full({9, 3}, 0.0, GetParam()));
  const Tensor sums = tensor_of<double>({10, 100});
  // sequences of 3, 3, 2 and 1 frames
  count_too_short(logits, {4, 3, 2}, labels_of({{1, 1}, {1, 1, 2}, {}, {1}}), sums);
  EXPECT_EQ(values(sums), (std::vector<double>{11, 103}));
}

TEST_P(CtcLoss, ALabelOutOfRangeIsNaN) {
  for (const int32_t label : {-2, 0, 3}) {
    const Outcome found =
        outcome_of(random_tensor({6, 3}, 1, GetParam()), {2, 2, 2}, labels_of({{1, label}, {1}}));
    EXPECT_TRUE(std::isnan(found.loss)) << label;
    EXPECT_TRUE(std::isnan(found.gradient[0])) << label;
  }
}

TEST_P(CtcLoss, ALogitThatIsNaNShows) {
  const Tensor logits = tensor({2, 2}, {0, 1, NAN, 1}, GetParam());
  const Outcome found = outcome_of(logits, {1, 1}, labels_of({{1}}));
  EXPECT_TRUE(std::isnan(found.loss));
  EXPECT_TRUE(std::isnan(found.gradient[2]));
}

/// A batch as in training: 8 utterances of up to 200 frames and up to 40 labels.
struct Utterances {
  std::vector<int64_t> rows;
  Tensor logits, labels;

  explicit Utterances(DType dtype) {
    for (int64_t t = 0; t < 200; ++t) rows.push_back(8 - t / 30);
    const Philox random(1, 0, 0);
    Transcripts transcripts(8);
    for (uint64_t n = 0; n < 8; ++n)
      for (uint64_t k = 0; k < 40 - 4 * n; ++k)
        transcripts[n].push_back(static_cast<int32_t>(1 + random.below(40 * n + k, 28)));
    labels = labels_of(transcripts);
    const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    logits = random_tensor({total, 29}, 2, dtype);
  }
};

TEST_P(CtcLoss, HasTheSameBitsForAnyThreads) {
  const Utterances utterances(GetParam());
  const int before = omp_get_max_threads();
  Outcome first;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Outcome found = outcome_of(utterances.logits, utterances.rows, utterances.labels);
    if (threads == 1) first = found;
    EXPECT_EQ(found.loss, first.loss) << threads << " threads";
    EXPECT_EQ(found.gradient, first.gradient) << threads << " threads";
  }
  omp_set_num_threads(before);
}

/// log p is -31,000. f32 has steps of 0.002 there, which would add up over the frames.
TEST(Ctc, TenThousandFramesAreThoseOfF64) {
  const std::vector<int64_t> rows(10'000, 1);
  std::vector<int32_t> transcript;
  for (int32_t k = 0; k < 500; ++k) transcript.push_back(1 + k * k % 28);
  const Tensor labels = labels_of({transcript});
  const Tensor narrow = random_tensor({10'000, 29}, 1, DType::f32);
  const Outcome found = outcome_of(narrow, rows, labels);
  const Outcome expected = outcome_of(tensor(narrow.shape(), values(narrow)), rows, labels);
  EXPECT_GT(expected.loss, 1e4);
  EXPECT_NEAR(found.loss, expected.loss, 1e-6 * expected.loss);
  // Alpha and beta are some thousands below the largest of their frames, where f32 has steps of up
  // to 5e-4.
  expect_near(found.gradient, expected.gradient, 1e-3);
}

TEST(Ctc, WritesItsGradientOverTheLogits) {
  const Utterances utterances(DType::f64);
  const int64_t frames = utterances.logits.shape()[0], classes = 500;
  Leaves leaves;
  const auto peak_of = [&](bool keep) {
    TestContext worker;
    const Variable x(worker.context, random_tensor({frames, 2}, 1));
    Variable logits = linear(x, leaves.make(worker.context, random_tensor({classes, 2}, 2)), {});
    const Variable loss = ctc_loss(logits, utterances.rows, utterances.labels);
    if (!keep) logits = {};
    backward(loss);
    return worker.pool.stats().peak_used_bytes;
  };
  const int64_t bytes = frames * classes * 8;
  EXPECT_LT(peak_of(false), bytes + bytes / 4);
  EXPECT_GE(peak_of(true), 2 * bytes);
  EXPECT_EQ(values(leaves.gradients()[0]), values(leaves.gradients()[1]));
}

TEST(Ctc, WithoutLabelsIsUndefined) {
  TestContext worker;
  EXPECT_FALSE(ctc_loss(Variable(worker.context, full({2, 3}, 0.0)), {1, 1}, {}).defined());
}

TEST(Ctc, RefusesWhatDoesNotFit) {
  TestContext worker;
  const auto error = [&](Tensor logits, std::vector<int64_t> rows, Tensor labels) {
    return error_of([&] { ctc_loss(Variable(worker.context, logits), rows, labels); });
  };
  const Tensor logits = full({3, 4}, 0.0), labels = labels_of({{1}, {2}});
  EXPECT_EQ(error(logits, {2, 2}, labels), "ctc_loss: logits are (3, 4), expected (4, C)");
  EXPECT_EQ(error(logits, {1, 2}, labels),
            "ctc_loss: 2 sequences reach position 1 and 1 the one before, expected the longest "
            "first");
  EXPECT_EQ(error(logits, {}, labels), "ctc_loss: no sequences");
  EXPECT_EQ(error(logits, {2, 1}, labels_of({{1}})),
            "ctc_loss: labels are (1, 1) i32, expected (2, L) i32");
  EXPECT_EQ(error(full({3, 4}, 0.0, DType::bf16), {2, 1}, labels),
            "ctc_loss: logits are bf16, expected f32 or f64: widen() what the last layer reads");
  EXPECT_EQ(
      error_of([&] {
        count_too_short(Variable(worker.context, logits), {2, 1}, labels, tensor_of<double>({0}));
      }),
      "count_too_short: sums are (1) f64, expected (2) f64");
}

}  // namespace
}  // namespace wisp
