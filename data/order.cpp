#include "data/order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/random.h"

namespace wisp {
namespace {

constexpr uint64_t kLaneId = 0xffffffff'6c616e65ull;  // differs from the keys of samples

constexpr uint64_t kOrderId = 0xffffffff'6f726465ull;  // likewise

/// The samples in the order of their blocks.
std::vector<int64_t> by_blocks(int64_t count, int64_t block, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> samples;
  samples.reserve(static_cast<size_t>(count));
  block = std::min(block, count);
  for (const int64_t number : shuffled((count + block - 1) / block, seed, epoch)) {
    const int64_t end = std::min((number + 1) * block, count);
    for (int64_t sample = number * block; sample < end; ++sample) samples.push_back(sample);
  }
  return samples;
}

/// Entropy, in nats, of the distances between neighbours. Samples are below `bound`.
double entropy(const std::vector<int64_t>& order, int64_t bound) {
  std::vector<int64_t> times(static_cast<size_t>(bound));
  for (size_t i = 1; i < order.size(); ++i)
    ++times[static_cast<size_t>(std::abs(order[i] - order[i - 1]))];
  const auto all = static_cast<double>(order.size() - 1);
  double sum = 0.0;
  for (const int64_t count : times) {
    const double share = static_cast<double>(count) / all;
    if (count > 0) sum -= share * std::log(share);
  }
  return sum;
}

}  // namespace

std::vector<int64_t> in_order(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Fisher-Yates.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order = in_order(count);
  const Philox philox(seed, static_cast<uint64_t>(epoch), kOrderId);
  for (size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[philox.below(i, static_cast<uint32_t>(i + 1))]);
  return order;
}

std::vector<int64_t> block_order(int64_t count, int64_t block, int64_t batch, uint64_t seed,
                                 int64_t epoch) {
  WISP_CHECK(batch >= 1 && count >= batch && block >= 1, "block_order: ", count,
             " samples in blocks of ", block, " for a batch of ", batch,
             ", expected at least a batch, and blocks of 1 or more");
  const std::vector<int64_t> samples = by_blocks(count, block, seed, epoch);
  const int64_t steps = count / batch;
  std::vector<int64_t> order(static_cast<size_t>(steps * batch));
  const Philox philox(seed, static_cast<uint64_t>(epoch), kLaneId);
  std::vector<int64_t> open;
  for (int64_t lane = 0; lane < batch; ++lane) {
    auto next = samples.begin() + lane * steps;
    const auto end = next + steps;
    for (int64_t step = 0; step < steps; ++step) {
      while (std::ssize(open) <= block && next != end) {
        const auto last = next + std::min<int64_t>(block, end - next);
        open.insert(open.end(), next, last);
        next = last;
      }
      const int64_t place = step * batch + lane;
      const auto drawn = static_cast<size_t>(
          philox.below(static_cast<uint64_t>(place), static_cast<uint32_t>(open.size())));
      order[static_cast<size_t>(place)] = open[drawn];
      open[drawn] = open.back();
      open.pop_back();
    }
  }
  return order;
}

std::vector<int64_t> repeated(const std::vector<int64_t>& order, int64_t count, int64_t samples,
                              int64_t repeats) {
  const int64_t steps = count / (samples * repeats);
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(steps * samples * repeats));
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t r = 0; r < repeats; ++r) {
      for (int64_t i = step * samples; i < (step + 1) * samples; ++i)
        rows.push_back(order[static_cast<size_t>(i)] + r * count);
    }
  }
  return rows;
}

double shuffle_quality(const std::vector<int64_t>& order) {
  if (order.size() < 3) return std::numeric_limits<double>::quiet_NaN();
  const int64_t bound = *std::max_element(order.begin(), order.end()) + 1;
  std::vector<int64_t> full = shuffled(bound, 0, 0);
  full.resize(std::min(full.size(), order.size()));  // `order` may leave samples out
  return entropy(order, bound) / entropy(full, bound);
}

}  // namespace wisp
