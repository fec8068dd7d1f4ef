#include "data/speech/utterance_batches.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "data/order.h"

namespace wisp {
namespace {

using Utterances = std::vector<int64_t>;

/// Sorts by falling length, then by index.
void sort_by_length(Utterances& utterances, std::span<const int64_t> frames) {
  std::ranges::sort(utterances, {}, [&](int64_t utterance) {
    return std::pair(-frames[static_cast<size_t>(utterance)], utterance);
  });
}

/// Cuts utterances, sorted by falling length, into steps of `size`.
std::vector<Utterances> steps_of_size(const Utterances& sorted, int64_t size) {
  std::vector<Utterances> steps;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = begin + std::min(size, sorted.end() - begin);
    steps.emplace_back(begin, end);
    begin = end;
  }
  return steps;
}

/// Cuts utterances, sorted by falling length, into steps of at most `budget` frames, each utterance
/// padded to the step's first. A last step of fewer than `least` utterances joins the step before
/// it.
std::vector<Utterances> steps_of_frames(const Utterances& sorted, std::span<const int64_t> frames,
                                        int64_t budget, int64_t least) {
  std::vector<Utterances> steps;
  int64_t longest = 0;
  for (const int64_t utterance : sorted) {
    if (steps.empty() || (std::ssize(steps.back()) + 1) * longest > budget) {
      steps.emplace_back();
      longest = std::max<int64_t>(1, frames[static_cast<size_t>(utterance)]);
    }
    steps.back().push_back(utterance);
  }
  if (steps.size() > 1 && std::ssize(steps.back()) < least) {
    const Utterances rest = std::move(steps.back());
    steps.pop_back();
    steps.back().insert(steps.back().end(), rest.begin(), rest.end());
  }
  return steps;
}

/// Deals a step's utterances, the longest first, to `count` pieces of at most `most`. Each goes to
/// the piece with the fewest frames.
std::vector<Utterances> dealt(const Utterances& step, std::span<const int64_t> frames,
                              int64_t count, int64_t most) {
  std::vector<Utterances> pieces(static_cast<size_t>(count));
  std::vector<int64_t> load(static_cast<size_t>(count));
  for (const int64_t utterance : step) {
    size_t least = pieces.size();
    for (size_t p = 0; p < pieces.size(); ++p)
      if (std::ssize(pieces[p]) < most && (least == pieces.size() || load[p] < load[least]))
        least = p;
    pieces[least].push_back(utterance);
    load[least] += std::max<int64_t>(1, frames[static_cast<size_t>(utterance)]);
  }
  return pieces;
}

}  // namespace

std::vector<Piece> cut_utterances(std::span<const int64_t> frames, std::span<const int64_t> most,
                                  int64_t budget, int64_t epoch, const Deal& deal,
                                  const std::string& name) {
  const bool fixed = budget == 0;
  if (fixed) deal.check(name);
  const int64_t count = std::ssize(frames);
  const int64_t least = fixed && deal.training ? deal.batch : deal.pieces();
  WISP_CHECK(count >= (deal.training ? least : deal.workers), name, ": ", count,
             " utterances, expected at least ", deal.training ? least : deal.workers);

  const auto furthest = std::max_element(most.begin(), most.end());
  const int64_t longest = *furthest;
  WISP_CHECK(fixed || budget >= deal.pieces() * longest, name, ": data.frames is ", budget,
             ", but with ", deal.pieces(), " workers x micro-batches and a longest utterance of ",
             longest, " frames it must be at least ", deal.pieces() * longest);

  Utterances order = shuffled(count, deal.seed, epoch);
  if (fixed && deal.training) {
    if (epoch == 0)
      std::iter_swap(order.begin(), std::find(order.begin(), order.end(), furthest - most.begin()));
    order.resize(static_cast<size_t>(count / deal.batch * deal.batch));
  }
  sort_by_length(order, fixed ? frames : most);
  std::vector<Utterances> steps = fixed ? steps_of_size(order, deal.batch)
                                        : steps_of_frames(order, most, budget, deal.pieces());
  for (Utterances& step : steps) sort_by_length(step, frames);
  if (deal.training && epoch == 0) {
    std::reverse(steps.begin() + 1, steps.end());
  } else if (deal.training) {
    std::vector<Utterances> drawn;
    for (const int64_t step : shuffled(std::ssize(steps), deal.seed, epoch))
      drawn.push_back(std::move(steps[static_cast<size_t>(step)]));
    steps = std::move(drawn);
  }

  std::vector<Piece> pieces;
  for (const Utterances& step : steps) {
    const int64_t places = fixed ? deal.batch / deal.pieces() : std::ssize(step);
    std::vector<Utterances> parts = dealt(step, frames, deal.pieces(), places);
    int64_t of_worker = 0;
    for (int64_t micro = 0; micro < deal.accumulate; ++micro)
      of_worker += std::ssize(parts[static_cast<size_t>(micro * deal.workers + deal.rank)]);
    for (int64_t micro = 0; micro < deal.accumulate; ++micro) {
      Utterances& part = parts[static_cast<size_t>(micro * deal.workers + deal.rank)];
      if (part.empty()) continue;
      Piece piece{.epoch = epoch,
                  .seed = deal.seed,
                  .count = std::ssize(part),
                  .of_worker = of_worker,
                  .of_step = std::ssize(step)};
      for (const int64_t utterance : part) piece.work += frames[static_cast<size_t>(utterance)];
      piece.rows = std::move(part);
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace wisp
