#include "apps/replica.h"

#include <cstring>

#include "apps/methods.h"
#include "core/clock.h"
#include "core/error.h"

namespace wisp {
namespace {

std::unique_ptr<Backend> backend_for(const TrainOptions& options, MemoryPool& pool,
                                     const Stream& stream) {
  return options.backend == "reference" ? make_reference_backend(pool, stream.id())
                                        : make_backend(pool, stream);
}

Context context_for(const TrainOptions& options, Worker& worker, MemoryPool& pool,
                    const Stream& stream, Backend& backend, int threads) {
  Context context{stream, backend, pool};
  context.compute = options.compute();
  context.seed = static_cast<uint64_t>(options.seed);
  context.rank = worker.rank;
  context.threads = threads;
  return context;
}

std::unique_ptr<Model> model_for(const Shared& shared, Config& config) {
  return ModelRegistry::instance()
      .find("model (model.name)", shared.options.model)
      .make(config, shared.ends);
}

}  // namespace

Replica::Replica(const Shared& shared, Worker& worker)
    : options_(shared.options),
      worker_(worker),
      trace_(worker.rank, shared.options.trace),
      compute_stream_(Stream::immediate()),
      comm_stream_(Stream::immediate()),
      compute_backend_(backend_for(shared.options, shared.pool, compute_stream_)),
      comm_backend_(backend_for(shared.options, shared.pool, comm_stream_)),
      compute_(context_for(shared.options, worker, shared.pool, compute_stream_, *compute_backend_,
                           worker.threads)),
      comm_(context_for(shared.options, worker, shared.pool, comm_stream_, *comm_backend_,
                        shared.options.comm_threads)),
      tally_(compute_),
      evaluation_(compute_) {
  Config config = shared.config;
  model_ = model_for(shared, config);
  parameters_ = std::make_unique<FlatParameters>(compute_, model_->parameters(), model_->buffers());
  optimizer_ = std::make_unique<Sgd>(*parameters_, options_.sgd);
  for (const Buffer* buffer : parameters_->buffers()) {
    saved_buffers_.push_back(compute_.empty(buffer->value.shape(), buffer->value.dtype()));
  }
  Methods chosen = choose_methods(config, options_, parameters_->segments());
  for (const Method& method : chosen.methods)
    methods_ += (methods_.empty() ? "" : ", ") + method.name;
  if (methods_.empty()) methods_ = "none";
  AveragingOptions averaging;
  averaging.buckets = options_.buckets;
  averaging.clip = options_.clip;
  averaging.overlap = options_.overlap;
  averaging.guard = options_.guard;
  averaging.timeout_s = options_.timeout_s;
  averaging.ratio = chosen.ratio;
  synchronizer_ = std::make_unique<GradientAveraging>(
      worker.communicator, compute_, comm_, *parameters_, std::move(chosen.methods),
      std::move(chosen.method_of), averaging, trace_);
}

/// Gives the turn to another worker while this one waits.
template <class Work>
void Replica::without_turn(const Work& work) {
  worker_.turns.release();
  work();
  worker_.turns.acquire();
}

StepReport Replica::step(int64_t step, double epoch, const NextBatch& next) {
  StepReport report;
  report.lr = options_.lr * options_.schedule.at(epoch);
  compute_.step = step;
  save_buffers();
  synchronizer_->begin({step, epoch, report.lr});
  report.compute_ms = forward_backward(next);

  without_turn([&] {
    const double begin = now_us();
    report.outcome = synchronizer_->before_update();
    const double clip_ms = (now_us() - begin) * 1e-3 - synchronizer_->cost().wait_ms;
    report.compute_ms += clip_ms;  // of the mean, after the wait
  });
  if (report.outcome == Outcome::skipped) {
    restore_buffers();
    ++skipped_in_a_row_;
    WISP_CHECK(skipped_in_a_row_ < options_.nonfinite_max, "step ", step,
               ": the loss was not finite in ", skipped_in_a_row_,
               " steps in a row; a smaller optimizer.lr or a clip.norm would help");
  } else {
    skipped_in_a_row_ = 0;
    const double begin = now_us();
    optimizer_->step(compute_, report.lr, synchronizer_->rules());
    synchronizer_->after_update();
    const double end = now_us();
    report.compute_ms += (end - begin) * 1e-3;
    trace_.span(Lane::compute, "update", begin, end, step);
  }
  report.cost = synchronizer_->cost();
  return report;
}

/// Returns milliseconds of compute.
double Replica::forward_backward(const NextBatch& next) {
  const int64_t step = compute_.step;
  double compute_ms = 0.0;
  tally_.begin_step();
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) {
    const Batch batch = next();
    const double begin = now_us();
    compute_.samples = batch.samples;
    const Step result = model_->forward(compute_, batch);
    tally_.add(result.loss, result.logits, batch.labels);
    const bool last = micro + 1 == options_.accumulate;
    if (last) synchronizer_->forward_done(tally_.step_loss());
    const double forward_end = now_us();
    trace_.span(Lane::compute, "forward", begin, forward_end, step);
    backward(result.loss,
             {.seed = 1.0 / static_cast<double>(options_.workers * options_.accumulate),
              .accumulate = micro > 0,
              .notify = last});
    const double end = now_us();
    trace_.span(Lane::compute, "backward", forward_end, end, step);
    compute_ms += (end - begin) * 1e-3;
  }
  return compute_ms;
}

void Replica::save_buffers() {
  size_t i = 0;
  for (const Buffer* buffer : parameters_->buffers()) {
    std::memcpy(saved_buffers_[i].raw(), buffer->value.raw(),
                static_cast<size_t>(buffer->value.bytes()));
    ++i;
  }
}

void Replica::restore_buffers() {
  size_t i = 0;
  for (const Buffer* buffer : parameters_->buffers()) {
    std::memcpy(buffer->value.raw(), saved_buffers_[i].raw(),
                static_cast<size_t>(buffer->value.bytes()));
    ++i;
  }
}

void Replica::sum_over_workers(std::span<double> values) {
  const Bytes data{reinterpret_cast<std::byte*>(values.data()),
                   static_cast<int64_t>(values.size_bytes())};
  without_turn([&] {
    synchronizer_->between_steps([&] {
      worker_.communicator.all_reduce({&data, 1}, DType::f64, ReduceOp::sum)->wait();
    });
  });
}

void Replica::barrier() {
  without_turn(
      [&] { synchronizer_->between_steps([&] { worker_.communicator.barrier()->wait(); }); });
}

TallyValues Replica::total(Tally& tally) {
  const TallyValues values = tally.take();
  double words[] = {values.loss, values.batches, values.correct, values.samples};
  sum_over_workers(words);
  return {words[0], words[1], words[2], words[3]};
}

TallyValues Replica::evaluate(Loader& loader) {
  save_buffers();
  std::vector<Bytes> buffers;
  for (const Buffer* buffer : parameters_->buffers())
    buffers.push_back({buffer->value.raw(), buffer->value.bytes()});
  without_turn([&] {
    synchronizer_->between_steps([&] { worker_.communicator.broadcast(buffers, 0)->wait(); });
  });
  compute_.training = false;
  compute_.recording = false;
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    compute_.samples = batch->samples;
    const Step result = model_->forward(compute_, *batch);
    evaluation_.add(result.loss, result.logits, batch->labels);
  }
  compute_.training = true;
  compute_.recording = true;
  restore_buffers();
  return total(evaluation_);
}

std::vector<std::pair<std::string, Tensor>> Replica::shared_state() {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const Segment& segment : parameters_->segments()) {
    named.emplace_back("weight/" + segment.name,
                       FlatParameters::view(parameters_->weight(), segment));
  }
  return named;
}

std::vector<std::pair<std::string, Tensor>> Replica::rank_state() {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const std::string& arena : parameters_->state_names()) {
    for (const Segment& segment : parameters_->segments()) {
      named.emplace_back(arena + "/" + segment.name,
                         FlatParameters::view(parameters_->state(arena), segment));
    }
  }
  for (const Buffer* buffer : parameters_->buffers())
    named.emplace_back("buffer/" + buffer->name, buffer->value);
  for (auto& [name, tensor] : synchronizer_->unit_state())
    named.emplace_back("unit/" + name, tensor);
  return named;
}

}  // namespace wisp
