// The bootstrap of a mean difference between paired runs, which draws pairs and test units. Any
// thread.
#pragma once

#include <span>
#include <vector>

namespace wisp {

/// Half of the 95 % interval about the mean over pairs of a score's difference, a sum over units
/// divided by a sum of `divisors`. differences[pair][unit] is the difference of a unit's sums, and
/// divisors[unit] > 0 its divisor in all runs. Each of 10,000 draws takes as many pairs and as many
/// units as there are, with replacement, and the same units for all its pairs. The half reaches
/// from the mean to the farther of the 2.5 and 97.5 % quantiles. NaN for one pair: units alone say
/// nothing of other seeds. The draws are the same in every call. Source: Bisani and Ney 2004,
/// "Bootstrap estimates for confidence intervals in ASR performance evaluation", who draw speakers
/// (here: pairs too).
double bootstrap_half(std::span<const std::vector<double>> differences,
                      std::span<const double> divisors);

}  // namespace wisp
