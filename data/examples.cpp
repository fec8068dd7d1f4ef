#include "data/examples.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "data/order.h"

namespace wisp {
namespace {

std::vector<Piece> cut(const std::vector<int64_t>& order, int64_t epoch, const Deal& deal) {
  const int64_t count = std::ssize(order), size = deal.batch / deal.pieces();
  const int64_t end = deal.training ? count / deal.batch * deal.batch : count;
  std::vector<Piece> pieces;
  for (int64_t begin = deal.rank * size; begin < end; begin += deal.workers * size) {
    const int64_t numel = std::min(size, end - begin);
    const auto first = order.begin() + begin;
    pieces.push_back({.rows = {first, first + numel},
                      .epoch = epoch,
                      .seed = deal.seed,
                      .count = numel,
                      .of_worker = size * deal.accumulate,
                      .of_step = deal.batch,
                      .work = numel});
  }
  return pieces;
}

}  // namespace

const char* name_of(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  return "?";
}

uint64_t Examples::digest() const {
  uint64_t hash = hash_number(static_cast<uint64_t>(count()), hash_text(""));
  for (int64_t sample = 0; sample < count(); ++sample) {
    const Origin from = origin(sample);
    hash = hash_text(from.speaker, hash_text(from.id, hash));
  }
  return hash;
}

void Deal::check(const std::string& name) const {
  WISP_CHECK(batch > 0 && workers > 0 && accumulate > 0, name, ": a batch of ", batch, " for ",
             workers, " workers and ", accumulate, " micro-batches, expected at least 1 each");
  WISP_CHECK(rank >= 0 && rank < workers, name, ": rank ", rank, " of ", workers, " workers");
  WISP_CHECK(accumulate <= batch / workers && batch % pieces() == 0, name, ": a batch of ", batch,
             " is not the same number of samples for ", workers, " workers and ", accumulate,
             " micro-batches");
}

const Examples* Splits::of(Split split) const {
  switch (split) {
    case Split::train:
      return train.get();
    case Split::validation:
      return validation.get();
    case Split::test:
      return test.get();
  }
  return nullptr;
}

std::vector<Piece> cut_samples(int64_t count, int64_t epoch, const Deal& deal,
                               const std::string& name, const SampleOrder& training) {
  deal.check(name);
  WISP_CHECK(count >= deal.workers, name, ": ", count, " samples for ", deal.workers,
             " workers, expected at least one each");
  WISP_CHECK(count >= deal.batch || !deal.training, name, ": ", count,
             " samples, expected at least the ", deal.batch, " of one step");
  if (!deal.training) return cut(in_order(count), epoch, deal);
  WISP_CHECK(deal.batch % training.repeats == 0, name, ": a batch of ", deal.batch,
             " rows does not hold ", training.repeats,
             " of each of its samples, expected a multiple (train.batch, data.repeats)");
  const int64_t samples = deal.batch / training.repeats;  // of a step
  std::vector<int64_t> order = training.block > 0
                                   ? block_order(count, training.block, samples, deal.seed, epoch)
                                   : shuffled(count, deal.seed, epoch);
  if (training.repeats > 1) order = repeated(order, count, samples, training.repeats);
  return cut(order, epoch, deal);
}

}  // namespace wisp
