#include "apps/train/test_units.h"

#include <algorithm>
#include <set>

#include "core/copy.h"

namespace wisp {

TestUnits::TestUnits(Replica& replica, const Examples& examples)
    : replica_(replica), metrics_(std::ssize(replica.model().metrics())) {
  std::vector<std::string> speakers;
  for (int64_t sample = 0; sample < examples.count(); ++sample) {
    speakers.push_back(examples.origin(sample).speaker);
    if (speakers.back().empty()) return;
  }
  const std::set<std::string> known(speakers.begin(), speakers.end());
  if (known.empty()) return;
  names_.assign(known.begin(), known.end());
  for (const std::string& speaker : speakers) {
    const auto found = std::ranges::lower_bound(names_, speaker);
    unit_of_.push_back(static_cast<size_t>(found - names_.begin()));
  }
  sums_ = DeviceWords(replica.context(), {std::ssize(names_) * metrics_, 2}, DType::f64);
}

/// Measures the batch once for each unit in it. The other rows' targets are then -1, so they count
/// for nothing.
void TestUnits::add(const Step& step, const Batch& batch) {
  if (names_.empty()) return;
  const Context& context = replica_.context();
  const Tensor samples = fetch(context.stream, batch.samples);
  const Tensor targets = fetch(context.stream, batch.targets);
  const int64_t rows = samples.numel(), width = targets.numel() / rows;
  std::vector<size_t> unit_of_row;
  for (int64_t row = 0; row < rows; ++row)
    unit_of_row.push_back(unit_of_[static_cast<size_t>(samples.data<int64_t>()[row])]);
  for (const size_t unit : std::set<size_t>(unit_of_row.begin(), unit_of_row.end())) {
    Batch own = batch;
    own.targets = context.empty(targets.shape(), targets.dtype());
    write_from_host(context.stream, own.targets, [&](const Tensor& to) {
      for (int64_t i = 0; i < targets.numel(); ++i) {
        const bool its = unit_of_row[static_cast<size_t>(i / width)] == unit;
        to.data<int32_t>()[i] = its ? targets.data<int32_t>()[i] : -1;
      }
    });
    const int64_t begin = static_cast<int64_t>(unit) * metrics_;
    replica_.model().measure(step, own, sums_.device().rows(begin, begin + metrics_));
  }
}

std::vector<TestUnit> TestUnits::total() const {
  if (names_.empty()) return {};
  const Stream& stream = replica_.context().stream;
  sums_.fetch(stream);
  stream.synchronize();
  std::vector<double> sums;  // pairs of the first metric
  for (size_t unit = 0; unit < names_.size(); ++unit) {
    const auto* pair = sums_.host().data<double>() + 2 * metrics_ * static_cast<int64_t>(unit);
    sums.insert(sums.end(), pair, pair + 2);
  }
  replica_.sum_over_workers(sums);
  std::vector<TestUnit> units;
  for (size_t unit = 0; unit < names_.size(); ++unit)
    units.push_back({names_[unit], sums[2 * unit], sums[2 * unit + 1]});
  return units;
}

}  // namespace wisp
