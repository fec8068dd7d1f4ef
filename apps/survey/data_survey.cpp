#include "apps/survey/data_survey.h"

#include <algorithm>
#include <cmath>

#include "data/order.h"

namespace wisp {
namespace {

constexpr size_t kMostDamage = 5;

struct Sums {
  double sum = 0.0, squares = 0.0;
  int64_t numel = 0;

  std::optional<Moments> moments() const {
    if (numel == 0) return std::nullopt;
    const double mean = sum / static_cast<double>(numel);
    const double variance = squares / static_cast<double>(numel) - mean * mean;
    return Moments{mean, std::sqrt(std::max(variance, 0.0))};
  }
};

/// Adds a tensor of floats; skips other types, which have no moments.
void add_numbers(const Tensor& tensor, Sums& sums) {
  if (tensor.dtype() != DType::f32 && tensor.dtype() != DType::f64 && tensor.dtype() != DType::bf16)
    return;
  dispatch_activation(tensor.dtype(), "survey", [&](auto zero) {
    const auto* numbers = tensor.data<decltype(zero)>();
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      const auto value = static_cast<double>(wide(numbers[i]));
      sum += value;
      squares += value * value;
    }
    sums.sum += sum;
    sums.squares += squares;
    sums.numel += tensor.numel();
  });
}

/// Adds an input. If each row has one target, damaged rows (-1) are skipped; else whole batches
/// with damage are.
void add_input(const Tensor& input, const Tensor& targets, bool damaged, Sums& sums) {
  const int64_t rows = input.shape()[0];
  if (targets.numel() != rows && damaged) return;
  if (targets.numel() != rows) return add_numbers(input, sums);
  for (int64_t row = 0; row < rows; ++row) {
    if (targets.data<int32_t>()[row] != -1) add_numbers(input.rows(row, row + 1), sums);
  }
}

void add_targets(const Tensor& targets, SplitSurvey& split) {
  for (int64_t i = 0; i < targets.numel(); ++i) {
    const int32_t target = targets.data<int32_t>()[i];
    if (target == -1) continue;
    ++split.targets;
    if (target >= 0 && target < std::ssize(split.classes)) {
      ++split.classes[static_cast<size_t>(target)];
    } else {
      ++split.outside;
    }
  }
}

void add_lengths(const Batch& batch, const Piece& piece, std::vector<int64_t>& lengths) {
  if (batch.lengths.defined()) {
    const auto* length = batch.lengths.data<int64_t>();
    lengths.insert(lengths.end(), length, length + batch.lengths.numel());
  } else if (piece.length > 0) {
    lengths.push_back(piece.length);
  }
}

std::optional<Spread> spread_of(std::vector<int64_t> numbers) {
  if (numbers.empty()) return std::nullopt;
  std::sort(numbers.begin(), numbers.end());
  return Spread{numbers.front(), numbers[(numbers.size() - 1) / 2], numbers.back()};
}

/// How well the first epoch of training is mixed; none for texts, which are not shuffled.
std::optional<double> mixing_of(const Examples& examples, Deal all) {
  all.training = true;
  std::vector<int64_t> order;
  for (const Piece& piece : examples.epoch(0, all)) {
    if (piece.length > 0) return std::nullopt;
    for (const int64_t row : piece.rows) {
      if (row < examples.count()) order.push_back(row);  // the first of repeated rows
    }
  }
  const double quality = shuffle_quality(order);
  return std::isfinite(quality) ? std::optional(quality) : std::nullopt;
}

SplitSurvey survey_split(const Prepared& prepared, Split split, int64_t classes) {
  const Examples& examples = *prepared.examples(split);
  const int64_t accumulate = prepared.options().accumulate;
  SplitSurvey found{.split = split, .samples = examples.count()};
  found.steps = (prepared.loader(split, 0)->batches() + accumulate - 1) / accumulate;
  found.classes.resize(static_cast<size_t>(classes));

  Deal all = prepared.options().deal(split, 0);  // one worker, in order, without augmentation
  all.workers = 1;
  all.accumulate = 1;
  all.training = false;
  const std::vector<Piece> pieces = examples.epoch(0, all);
  Loader loader(examples, all, {.threads = prepared.options().loader_threads});
  loader.start_epoch(0);
  std::vector<Sums> inputs;
  std::vector<int64_t> lengths;
  while (const std::optional<Batch> batch = loader.next()) {
    found.work += batch->work;
    add_targets(batch->targets, found);
    add_lengths(*batch, pieces[static_cast<size_t>(batch->index)], lengths);
    inputs.resize(batch->inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      add_input(batch->inputs[i], batch->targets, !loader.damage().empty(), inputs[i]);
    for (const std::string& damage : loader.damage()) {
      if (found.damage.size() < kMostDamage) found.damage.push_back(damage);
    }
  }
  if (split == Split::train) found.mixing = mixing_of(examples, all);
  found.damaged = loader.damaged();
  found.lengths = spread_of(std::move(lengths));
  for (const Sums& sums : inputs) found.inputs.push_back(sums.moments());
  return found;
}

}  // namespace

DataSurvey survey_data(const Prepared& prepared) {
  DataSurvey survey{.facts = prepared.source().facts(), .batch = prepared.options().batch};
  for (Feed& feed : survey.facts.inputs) {
    if (feed.dtype == DType::f32) feed.dtype = prepared.options().compute();
  }
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    if (prepared.examples(split))
      survey.splits.push_back(survey_split(prepared, split, survey.facts.classes));
  }
  survey.notices = prepared.passed_over();
  return survey;
}

}  // namespace wisp
