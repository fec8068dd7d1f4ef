#include "apps/train/predictions.h"

#include <cstring>

#include "core/channel_order.h"
#include "core/io/checkpoint.h"

namespace wisp {
namespace {

/// Copies `rows` to the row `first` of `all`.
void put_rows(const Tensor& all, int64_t first, const Tensor& rows) {
  std::memcpy(all.rows(first, first + rows.shape()[0]).raw(), rows.raw(),
              static_cast<size_t>(rows.bytes()));
}

}  // namespace

void write_predictions(const std::string& path, const Prepared& run, Replica& replica) {
  run.facts().image("predictions");  // throws for anything else
  const Examples& examples = *run.examples(Split::test);
  Loader loader(examples, {.batch = run.options().micro_batch(), .training = false});
  Context context = replica.context();
  context.training = false;
  context.recording = false;

  const int64_t count = examples.count();
  Tensor input, logits;  // shaped by the first batch
  const Tensor labels({count}, DType::i32);
  int64_t done = 0;
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    context.samples = batch->samples;
    const Tensor& image = batch->inputs.front();
    const Tensor found = replica.model().forward(context, *batch, {}).output.value();
    if (done == 0) {
      input = Tensor(image.shape().with_rows(count), image.dtype());
      logits = Tensor(found.shape().with_rows(count), found.dtype());
    }
    put_rows(input, done, image);
    put_rows(labels, done, batch->targets);
    put_rows(logits, done, found);
    done += image.shape()[0];
  }
  CheckpointWriter writer;
  writer.add("input", channels_first(input));
  writer.add("labels", labels);
  writer.add("logits", logits);
  writer.write(path);
}

}  // namespace wisp
