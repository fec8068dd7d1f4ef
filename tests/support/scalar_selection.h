// A plain model of a sparsifier's selection: the positions of the numbers that it sends.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "compression/sparse/select.h"

namespace wisp {

using ScalarSelection = std::function<std::vector<size_t>(const std::vector<float>&)>;

/// The k largest candidates in magnitude.
inline std::vector<size_t> largest_of(const std::vector<float>& v, std::vector<size_t> candidates,
                                      size_t k) {
  std::sort(candidates.begin(), candidates.end(),
            [&](size_t a, size_t b) { return std::fabs(v[a]) > std::fabs(v[b]); });
  candidates.resize(std::min(k, candidates.size()));
  return candidates;
}

inline std::vector<size_t> select_largest(const std::vector<float>& v, size_t k) {
  std::vector<size_t> all(v.size());
  std::iota(all.begin(), all.end(), 0);
  return largest_of(v, all, k);
}

/// Lin et al. 2018, section 3.1, with the bounds of the authors' code. A sample gives a threshold.
/// It is multiplied by 0.8, at most ten times, while fewer than 0.8 k numbers pass. If more than k
/// pass, the k largest are taken. Ours are the sample's size and places, and the choice of the
/// threshold between two numbers of the sample: the one with the most zero bytes at its end.
inline std::vector<size_t> select_sampled(const std::vector<float>& v, size_t k,
                                          const Philox& random) {
  const select::Extent extent(static_cast<int64_t>(v.size()), static_cast<int64_t>(k),
                              Selection::Kind::sampled);
  if (extent.sample == 0) return select_largest(v, k);  // small: the sample is everything
  const int64_t clusters = extent.sample / select::kCluster;
  const int64_t stride = extent.numel / clusters;
  const int64_t first = random.below(1, static_cast<uint32_t>(stride - select::kCluster + 1));
  std::vector<float> sample;
  for (int64_t cluster = 0; cluster < clusters; ++cluster)
    for (int64_t i = 0; i < select::kCluster; ++i)
      sample.push_back(std::fabs(v[static_cast<size_t>(first + cluster * stride + i)]));
  std::sort(sample.rbegin(), sample.rend());
  float threshold = sample[static_cast<size_t>(extent.rank) - 1];
  for (int bits = 24; bits > 0; bits -= 8) {
    const float shorter = float_from_bits(float_bits(threshold) >> bits << bits);
    if (std::count_if(sample.begin(), sample.end(), [&](float x) { return x >= shorter; }) ==
        extent.rank) {
      threshold = shorter;
      break;
    }
  }
  const auto passing = [&] {
    std::vector<size_t> found;
    for (size_t i = 0; i < v.size(); ++i)
      if (std::fabs(v[i]) >= threshold) found.push_back(i);
    return found;
  };
  std::vector<size_t> found = passing();
  for (int step = 0; step < 10 && 5 * found.size() < 4 * k; ++step) {
    threshold *= 0.8f;
    found = passing();
  }
  return largest_of(v, found, k);
}

}  // namespace wisp
