#include "apps/inference/predictions_file.h"

#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/io/checkpoint.h"
#include "core/tensor/channel_order.h"

namespace wisp {
namespace {

/// The file's tensors by name, with shapes added up over all batches.
using Entries = std::map<std::string, CheckpointStream::Entry>;

void add_rows(Entries& entries, const std::string& name, Shape shape, DType dtype) {
  const auto [entry, first] = entries.try_emplace(name, CheckpointStream::Entry{shape, dtype});
  if (first) return;
  Shape& all = entry->second.shape;
  WISP_CHECK(shape.with_rows(0) == all.with_rows(0), "predictions: ", name, " is ", shape,
             " in one batch, and had rows as in ", all, " before");
  all = all.with_rows(all[0] + shape[0]);
}

Entries entries_of(const Examples& examples, const Deal& deal, const std::vector<Feed>& feeds) {
  Entries entries;
  Batch batch;
  for (const Piece& piece : examples.epoch(0, deal)) {
    examples.shape(piece, batch);
    for (size_t i = 0; i < feeds.size(); ++i)
      add_rows(entries, feeds[i].name, channels_first(batch.inputs[i].shape()),
               batch.inputs[i].dtype());
    add_rows(entries, "labels", batch.targets.shape(), batch.targets.dtype());
  }
  return entries;
}

}  // namespace

void check_predictions(const Facts& facts, const std::string& option) {
  for (const Feed& feed : facts.inputs)
    WISP_CHECK(!feed.padded, option, ": needs samples of one length, but those of the run (",
               feed.name, ") vary; for speech, use --alignment");
}

void write_predictions(const std::string& path, const Prepared& run, Inference& model) {
  const Examples& examples = *run.examples(Split::test);
  // the pieces of all workers, so that the columns of a text are those of an evaluation
  Deal deal = run.options().deal(Split::test, 0);
  deal.accumulate = deal.pieces();
  deal.workers = 1;
  const std::vector<Feed>& feeds = model.facts().inputs;
  Entries entries = entries_of(examples, deal, feeds);
  std::vector<Carry> carried(static_cast<size_t>(deal.accumulate));
  std::optional<CheckpointStream> file;
  Loader loader(examples, deal);
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    Carry& carry = carried[static_cast<size_t>(batch->index % deal.accumulate)];
    if (batch->begins) carry = model.zeros(deal.batch / deal.accumulate);
    const Step step = model(*batch, carry);
    carry = step.after;
    const Tensor& logits = step.output.value();
    WISP_CHECK(logits.shape().rank() > 0 && logits.shape()[0] == batch->targets.numel(),
               "predictions: the model's output is ", logits.shape(), " for ",
               batch->targets.numel(), " targets, expected a row for each");
    if (!file) {
      entries["logits"] = {logits.shape().with_rows(entries.at("labels").shape.numel()),
                           logits.dtype()};
      file.emplace(path, entries);
    }
    for (size_t i = 0; i < feeds.size(); ++i)
      file->append(feeds[i].name, channels_first(batch->inputs[i]));
    file->append("labels", batch->targets);
    file->append("logits", logits);
  }
  file->finish();
}

}  // namespace wisp
