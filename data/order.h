// Orders of the samples of an epoch, and a measure of how well they are mixed. Any thread may call.
#pragma once

#include <cstdint>
#include <vector>

namespace wisp {

/// 0 to count - 1.
std::vector<int64_t> in_order(int64_t count);
/// 0 to count - 1 in an order that depends on (seed, epoch).
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch);

/// An order for sets that are read fastest in blocks of neighbours.
///
/// The samples of an epoch, step by step: element (step · batch + lane). There are count / batch
/// steps; the other samples are left out, in each epoch other ones.
///
/// The blocks, of `block` neighbours, come in a random order, one after the other. Each lane takes
/// an equal range of them. A lane draws from few blocks at a time: with blocks of 256, in the mean
/// 8 and at most 11 are begun and not ended. Each of a lane's last ones is shared with the next
/// lane. The order depends on (count, block, batch, seed, epoch), never on the number of workers.
/// Throws Error unless count >= batch >= 1 and block >= 1.
std::vector<int64_t> block_order(int64_t count, int64_t block, int64_t batch, uint64_t seed,
                                 int64_t epoch);

/// An order for repeated augmentation (Hoffer et al. 2020, "Augment your batch"). A step has
/// `samples` of `order`, all of them `repeats` times in turn. Repetition r of a sample is the
/// number sample + r · count. There are count / (samples · repeats) steps; the later samples of
/// `order` are left out, in each epoch other ones.
std::vector<int64_t> repeated(const std::vector<int64_t>& order, int64_t count, int64_t samples,
                              int64_t repeats);

/// A measure of an order's mixing: the entropy of the distances between one sample and the next,
/// divided by that of a full permutation. 1: as good; 0: in order. Source: MosaicML Streaming's
/// shuffle quality. NaN for fewer than three samples.
double shuffle_quality(const std::vector<int64_t>& order);

}  // namespace wisp
