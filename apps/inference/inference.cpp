#include "apps/inference/inference.h"

#include <algorithm>
#include <cmath>

#include "apps/run/checkpoints.h"
#include "apps/run/run_directory.h"
#include "core/base/core_share.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"

namespace wisp {
namespace {

/// The run's configuration, for one worker on the CPU. Throws Error for an override of a key that
/// the run does not have.
Config load(const RunDirectory& directory, std::span<const std::string> overrides) {
  const std::string path = directory.file("config.toml");
  const Config own = Config::load(path, {});
  for (const std::string& override : overrides) {
    const std::string key = override.substr(0, override.find('='));
    WISP_CHECK(own.given(key), "unknown key '", key, "': ", path, " has none of that name");
  }
  Config config = Config::load(path, overrides);
  config.set("workers", "1");
  config.set("device", "\"cpu\"");
  config.set("distributed.engine", "\"auto\"");
  return config;
}

Context evaluating(const TrainOptions& options, const Stream& stream, Backend& backend,
                   MemoryPool& pool) {
  Context context{stream, backend, pool};
  context.compute = options.compute();
  context.training = false;
  context.recording = false;
  const int asked =
      options.threads > 0 ? options.threads : core_share(CoreLimits::here(), 1).threads;
  context.threads = granted_omp_threads(asked);
  return context;
}

RunFacts read_facts(const std::string& run) {
  RunFacts facts = RunFacts::read(run);
  WISP_CHECK(!facts.facts.inputs.empty(), run,
             ": has no facts.json, which says what the model reads; it is of an older version");
  return facts;
}

/// Whether a batch of the feed may have this shape: (N, sample …), or (T, N, …) for a sequence.
bool fits(const Shape& shape, const Feed& feed) {
  if (shape.rank() != feed.sample.rank() + 1) return false;
  for (int i = feed.is_sequence() ? 2 : 1; i < shape.rank(); ++i) {
    const int64_t expected = feed.sample[i - 1];
    if (expected != 0 && shape[i] != expected) return false;
  }
  return true;
}

/// Throws Error for an id outside its table, which ops would read as zeros.
template <class T>
void check_ids(const Tensor& input, const Feed& feed) {
  for (int64_t i = 0; i < input.numel(); ++i)
    WISP_CHECK(input.data<T>()[i] >= 0 && input.data<T>()[i] < feed.ids, "inference: ", feed.name,
               ": number ", i, " is ", input.data<T>()[i], ", expected 0 to ", feed.ids - 1);
}

}  // namespace

Inference::Inference(const std::string& run, std::span<const std::string> overrides,
                     const std::string& checkpoint)
    : config_(load(RunDirectory(run, RunDirectory::Open::read), overrides)),
      options_(TrainOptions::bind(config_, {})),
      facts_(read_facts(run)),
      stream_(Stream::immediate()),
      backend_(options_.make_backend(pool_, stream_)),
      context_(evaluating(options_, stream_, *backend_, pool_)),
      model_(make_model(options_.model, config_, facts_.facts)) {
  const std::vector<Parameter*> declared = model_->parameters();
  for (Parameter* parameter : declared) {
    parameter->frozen = true;  // no gradients
    parameter->init = {};      // nothing is drawn
  }
  parameters_ = std::make_unique<FlatParameters>(context_, declared, model_->buffers());
  notices_ = Checkpoints(run + "/checkpoints", options_.checkpoint)
                 .load_evaluated(*parameters_, checkpoint);
  if (context_.threads < options_.threads)
    notices_.push_back(concat("threads is ", options_.threads, ", but OpenMP grants ",
                              context_.threads, " here, which compute the same"));
}

Step Inference::operator()(const Batch& batch, const Carry& before) {
  check(batch, before);
  const OmpThreads threads(context_.threads);
  return model_->forward(context_, batch, before);
}

Carry Inference::zeros(int64_t columns) const {
  Carry carry;
  for (const Shape& column : model_->carried())
    carry.push_back(context_.zeros(column.stacked(columns), context_.compute));
  return carry;
}

void Inference::check(const Batch& batch, const Carry& before) const {
  const std::vector<Feed>& feeds = facts().inputs;
  WISP_CHECK(batch.inputs.size() == feeds.size(), "inference: ", batch.inputs.size(),
             " inputs, expected ", feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& input = batch.inputs[i];
    const DType dtype = feeds[i].dtype == DType::f32 ? compute() : feeds[i].dtype;
    WISP_CHECK(input.defined() && input.dtype() == dtype, "inference: ", feeds[i].name, " is ",
               input.defined() ? name_of(input.dtype()) : "undefined", ", expected ",
               name_of(dtype));
    WISP_CHECK(fits(input.shape(), feeds[i]), "inference: ", feeds[i].name, " is ", input.shape(),
               ", expected ", feeds[i].is_sequence() ? "positions of columns" : "a batch", " of ",
               feeds[i].sample);
    if (feeds[i].ids > 0)
      dtype == DType::i64 ? check_ids<int64_t>(input, feeds[i])
                          : check_ids<int32_t>(input, feeds[i]);
  }
  const std::vector<Shape> carried = model_->carried();
  WISP_CHECK(before.size() == carried.size(), "inference: a state of ", before.size(),
             " tensors, but the model carries ", carried.size(),
             "; zeros() is the state that a text begins with");
  for (size_t i = 0; i < carried.size(); ++i) {
    const Shape& shape = before[i].shape();
    WISP_CHECK(
        shape.rank() > 0 && shape == carried[i].stacked(shape[0]) && before[i].dtype() == compute(),
        "inference: tensor ", i, " of the state is ", shape, " ", name_of(before[i].dtype()),
        ", expected (columns, ...) of ", carried[i], " ", name_of(compute()));
  }
}

std::vector<double> log_softmax(const Tensor& logits, int64_t row) {
  std::vector<double> result;
  dispatch_float(logits.dtype(), "log_softmax", [&](auto zero) {
    using T = decltype(zero);
    const Tensor of_row = logits.rows(row, row + 1);
    result.assign(of_row.data<T>(), of_row.data<T>() + of_row.numel());
  });
  const double largest = *std::max_element(result.begin(), result.end());
  double sum = 0.0;
  for (const double logit : result) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);
  WISP_CHECK(std::isfinite(log_sum), "the model's output is not finite; has it diverged?");
  for (double& value : result) value -= log_sum;
  return result;
}

}  // namespace wisp
