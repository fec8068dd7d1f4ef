#include "apps/setup/replica.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "apps/setup/memory_for.h"
#include "apps/setup/methods.h"
#include "apps/setup/prepared.h"
#include "apps/setup/weights.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/train/freeze.h"
#include "core/train/norm.h"
#include "distributed/communicator/nccl_communicator.h"
#include "distributed/communicator/staged_communicator.h"

namespace wisp {
namespace {

Context context_for(const TrainOptions& options, Worker& worker, MemoryPool& pool,
                    const Stream& stream, Backend& backend, int threads) {
  Context context{stream, backend, pool};
  context.compute = options.compute();
  context.seed = static_cast<uint64_t>(options.seed);
  context.rank = worker.rank;
  context.threads = threads;
  return context;
}

/// A communicator by NCCL if every worker has a GPU of its own, else through host memory.
std::unique_ptr<Communicator> between_devices(const TrainOptions& options, Communicator& host,
                                              const Stream& stream, const MemoryPool& pool) {
  if (options.device == "cuda" || options.devices > 1) {
    auto shared = static_cast<std::byte>(!options.own_device);
    const Bytes by_any{&shared, 1};
    host.all_reduce({&by_any, 1}, DType::u8, ReduceOp::max)->wait();
    std::unique_ptr<Communicator> nccl;
    if (shared == std::byte{0}) nccl = join_nccl(host, stream, pool, options.timeout_s);
    if (nccl) return nccl;
  }
  return std::make_unique<StagedCommunicator>(host, stream, pool);
}

}  // namespace

Replica::Replica(const Prepared& run, MemoryPool& pool, Worker& worker)
    : options_(run.options()),
      worker_(worker),
      held_out_(run.source().held_out()),
      trace_(worker.rank, options_.trace),
      compute_stream_(Stream::on(pool.device())),
      comm_stream_(Stream::on(pool.device())),
      compute_backend_(options_.make_backend(pool, compute_stream_)),
      comm_backend_(options_.make_backend(pool, comm_stream_, false)),
      compute_(
          context_for(options_, worker, pool, compute_stream_, *compute_backend_, worker.threads)),
      comm_(
          context_for(options_, worker, pool, comm_stream_, *comm_backend_, options_.comm_threads)),
      upload_(compute_),
      plateau_(options_.schedule.of_kind.plateau),
      skipped_in_a_row_({1}, DType::i64),
      traffic_({6}, DType::i64) {
  Config config = run.config();
  model_ = make_model(options_.model, config, run.facts());
  tally_.emplace(compute_, *model_);
  evaluation_.emplace(compute_, *model_);
  carried_.emplace(compute_, *model_, options_.deal(Split::train, worker.rank));
  const std::vector<Parameter*> declared = model_->parameters();
  freeze(config, declared);
  memory_for("the model's weights", "model.…, optimizer.kind", [&] {
    parameters_ = std::make_unique<FlatParameters>(compute_, declared, model_->buffers());
    optimizer_ = options_.optimizer.recipe.make(*parameters_);
  });
  WISP_CHECK(std::ssize(optimizer_->arenas()) == options_.optimizer.recipe.arenas, "optimizer ",
             options_.optimizer.kind, " has ", optimizer_->arenas().size(),
             " arenas, but its recipe says ", options_.optimizer.recipe.arenas);
  if (options_.ema.decay > 0.0) ema_.emplace(compute_, *parameters_, options_.ema);
  saved_buffers_ = compute_.empty(parameters_->buffer_arena().shape(), parameters_->dtype());
  Methods chosen = choose_methods(config, options_, parameters_->segments());
  methods_ = chosen.names;
  const bool alone = options_.devices > 1;  // each worker of this process has its own device
  if (pool.device().is_cuda() && (alone || !worker.communicator.move_devices(comm_.stream, pool)))
    of_device_ = between_devices(options_, worker.communicator, comm_stream_, pool);
  synchronizer_ = chosen.make({communicator(), compute_, comm_, *parameters_, trace_}, options_);
  sent_before_ = communicator().bytes_sent();
}

Replica::~Replica() {
  synchronizer_.reset();
  for (const Stream& stream : {compute_stream_, comm_stream_}) {
    try {
      stream.synchronize();
    } catch (const std::exception& failure) {  // the worker that noticed it has reported it
    }
  }
}

/// Runs `work`, which waits, while another worker has the turn.
void Replica::without_turn(const std::function<void()>& work) {
  worker_.turns.release();
  work();
  worker_.turns.acquire();
}

/// Runs collectives between steps.
void Replica::exchange(const std::function<void()>& work) {
  without_turn([&] { synchronizer_->between_steps(work); });
}

StepReport Replica::step(int64_t step, double epoch, const NextBatch& next,
                         const BatchAhead& ahead) {
  StepReport report;
  report.lr = options_.optimizer.lr * options_.schedule.at(epoch) * plateau_.factor();
  compute_.step = step;
  compute_watch_.poll();
  save_buffers();
  synchronizer_->begin({step, epoch, report.lr});
  try {
    forward_backward(next, ahead, report);
  } catch (const OutOfMemory& failure) {
    throw OutOfMemory(
        concat("step ", step, ", forward and backward: ", failure.what(),
               "; a smaller train.batch would help, or the same with a larger train.accumulate"));
  }

  without_turn([&] { report.outcome = synchronizer_->before_update(); });
  auto& skipped_in_a_row = *skipped_in_a_row_.data<int64_t>();
  if (report.outcome == Outcome::skipped) {
    restore_buffers();
    carried_->drop();
    tally_->drop_step();
    ++skipped_in_a_row;
    if (skipped_in_a_row >= options_.nonfinite_max)
      throw Diverged(concat("step ", step, ": the loss was not finite in ", skipped_in_a_row,
                            " steps in a row; a smaller optimizer.lr or a clip.norm would help"));
  } else {
    skipped_in_a_row = 0;
    carried_->commit();
    const int64_t number = synchronizer_->updates();
    StreamWatch::Mark begin = compute_watch_.mark();
    optimizer_->step(compute_, report.lr, number, synchronizer_->rules());
    count_compute(std::move(begin), "update");
    without_turn([&] { synchronizer_->after_update(); });
    if (ema_) {
      begin = compute_watch_.mark();
      ema_->update(compute_, number);
      count_compute(std::move(begin), "averages");
    }
  }
  report.compute_ms = std::exchange(compute_ms_, 0.0) + synchronizer_->cost().clip_ms;
  report.cost = synchronizer_->cost();
  report.health = synchronizer_->health();
  count(report.cost);
  return report;
}

/// Counts the work of the compute stream since `begin`.
void Replica::count_compute(StreamWatch::Mark begin, const char* what) {
  compute_watch_.time(std::move(begin),
                      [this, what, step = compute_.step](const StreamWatch::Span& span) {
                        compute_ms_ += span.ms();
                        trace_.span(Lane::compute, what, span.begin_us, span.end_us, step);
                      });
}

void Replica::count(const StepCost& cost) {
  auto* sums = traffic_.data<int64_t>();
  const int64_t step[] = {cost.bytes_raw,      cost.bytes_encoded, cost.bytes_sent,
                          cost.bytes_received, cost.bytes_dense,   1};
  for (size_t i = 0; i < std::size(step); ++i) sums[i] += step[i];
  sent_in_steps_ += cost.bytes_sent;
}

RunTraffic Replica::traffic() {
  double words[8];
  std::copy_n(traffic_.data<int64_t>(), 6, words);
  words[6] = static_cast<double>(communicator().bytes_sent() - sent_before_ - sent_in_steps_);
  words[7] = static_cast<double>(sent_for_distances_);
  sum_over_workers(words);
  return {words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]};
}

void Replica::forward_backward(const NextBatch& next, const BatchAhead& ahead, StepReport& report) {
  const int64_t step = compute_.step;
  tally_->begin_step();
  for (int64_t micro = 0; micro < options_.accumulate; ++micro) {
    const double asked = now_us();
    const Batch loaded = next();
    const double given = now_us();
    report.loader_ms += (given - asked) * 1e-3;
    trace_.span(Lane::wait, "loader", asked, given, step);
    StreamWatch::Mark begin = compute_watch_.mark();
    if (micro == 0) parameters_->round_weights();
    const Batch batch = upload_(loaded);
    compute_.samples = batch.samples;
    Step result = model_->forward(compute_, batch, carried_->before(batch, micro));
    tally_->add(result, batch);
    result.output = {};  // frees its memory for its gradient
    carried_->after(micro, result.after);
    report.work += static_cast<double>(batch.work) * static_cast<double>(batch.of_step) /
                   static_cast<double>(batch.of_worker);
    const bool last = micro + 1 == options_.accumulate;
    if (last) synchronizer_->forward_done(tally_->step_loss());
    count_compute(std::move(begin), "forward");
    begin = compute_watch_.mark();
    backward(result.loss,
             {.seed = share_of(batch) * result.weight, .accumulate = micro > 0, .notify = last});
    if (!last) synchronizer_->micro_batch_done();
    start_upload(ahead);
    count_compute(std::move(begin), "backward");
  }
}

void Replica::start_upload(const BatchAhead& ahead) {
  if (!compute_stream_.device().is_cuda()) return;
  if (const std::optional<Batch> batch = ahead()) upload_.start(*batch);
}

/// The batch's share of the mean that the step takes: over all workers' targets, or this worker's
/// if its weights are its own.
double Replica::share_of(const Batch& batch) const {
  const int64_t whole = replicas_differ() ? batch.of_worker : batch.of_step;
  return static_cast<double>(batch.count) / static_cast<double>(whole);
}

void Replica::sum_over_workers(std::span<double> values) {
  const Bytes data{reinterpret_cast<std::byte*>(values.data()),
                   static_cast<int64_t>(values.size_bytes())};
  exchange([&] { communicator().all_reduce({&data, 1}, DType::f64, ReduceOp::sum)->wait(); });
}

bool Replica::rank_0_says(const std::function<bool()>& answer) {
  double yes = rank() == 0 && answer() ? 1.0 : 0.0;
  sum_over_workers({&yes, 1});  // other ranks add zero
  return yes > 0.0;
}

std::vector<std::string> Replica::gather(const std::string& text) {
  const auto workers = static_cast<size_t>(options_.workers);
  const auto own = static_cast<size_t>(worker_.rank);
  std::vector<double> sizes(workers);
  sizes[own] = static_cast<double>(text.size());
  sum_over_workers(sizes);
  std::vector<std::string> texts(worker_.rank == 0 ? workers : 0);
  std::vector<ConstBytes> out(workers);
  out[0] = {reinterpret_cast<const std::byte*>(text.data()), static_cast<int64_t>(text.size())};
  std::vector<Bytes> in(workers);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank].resize(static_cast<size_t>(sizes[rank]));
    in[rank] = {reinterpret_cast<std::byte*>(texts[rank].data()),
                static_cast<int64_t>(texts[rank].size())};
  }
  exchange([&] { communicator().all_to_all(out, in)->wait(); });
  return texts;
}

void Replica::barrier() {
  exchange([&] { communicator().barrier()->wait(); });
}

void Replica::check_agreement(const NamedValue& value) {
  exchange([&] { wisp::check_agreement(communicator(), {&value, 1}); });
}

TallyValues Replica::total(Tally& tally) {
  TallyValues values = tally.take();
  sum_over_workers(values.sums);
  return values;
}

void Replica::start_from(const std::string& file, const Facts& facts) {
  read_weights(compute_.stream, file, *model_, *parameters_, facts);
  if (ema_) ema_->restart(compute_);
}

void Replica::observe(const TallyValues& evaluation) {
  plateau_.observe(evaluation.any() ? evaluation.mean_loss() : std::nan(""));
}

void Replica::with_averages(const std::function<void()>& work) {
  if (ema_) ema_->exchange(compute_);
  save_buffers();
  share_buffers();
  Tensor mean;  // mean of the weights, or of their averages over time
  if (synchronizer_->replicas_differ()) without_turn([&] { mean = synchronizer_->consensus(); });
  const auto swap_weights = [&] {
    if (mean.defined())
      swap_contents(compute_.stream, mean, parameters_->weight().slice(0, mean.shape()));
  };
  swap_weights();
  work();
  swap_weights();
  restore_buffers();
  if (ema_) ema_->exchange(compute_);
}

/// Sets running statistics to rank 0's, or to the mean over workers if their weights differ.
void Replica::share_buffers() {
  std::vector<Bytes> buffers;
  for (const Buffer* buffer : parameters_->buffers())
    buffers.push_back({buffer->value.raw(), buffer->value.bytes()});
  if (buffers.empty()) return;
  const bool differ = synchronizer_->replicas_differ();
  std::vector<ConstBytes> out(buffers.size());  // only rank 0 has something to send
  for (size_t i = 0; rank() == 0 && i < out.size(); ++i)
    out[i] = {buffers[i].data, buffers[i].bytes};
  std::vector<Bytes> in = buffers;
  in.resize(in.size() * static_cast<size_t>(workers()));
  compute_.stream.synchronize();  // the communicator reads them next
  exchange([&] {
    if (differ) {
      communicator().all_reduce(buffers, parameters_->dtype(), ReduceOp::sum)->wait();
    } else {
      communicator().all_gather(out, in)->wait();
    }
  });
  if (!differ) return;
  for (const Buffer* buffer : parameters_->buffers())
    scale(compute_.stream, buffer->value, 1.0 / workers());
  compute_.stream.synchronize();
}

std::optional<double> Replica::consensus_distance() {
  if (!synchronizer_->replicas_differ()) return std::nullopt;
  double distance = 0.0;
  const int64_t before = communicator().bytes_sent();
  without_turn([&] { distance = synchronizer_->consensus_distance(); });
  sent_for_distances_ += communicator().bytes_sent() - before;
  return distance;
}

std::optional<TallyValues> Replica::evaluate(Loader& loader, const std::function<bool()>& stop,
                                             const WatchResult& watch) {
  std::optional<TallyValues> values;
  with_averages([&] { values = evaluate_as_is(loader, stop, watch); });
  return values;
}

std::optional<TallyValues> Replica::evaluate_as_is(Loader& loader,
                                                   const std::function<bool()>& stop,
                                                   const WatchResult& watch) {
  compute_.training = false;
  compute_.recording = false;
  parameters_->round_weights();
  const Deal& deal = loader.deal();
  CarriedState carried(compute_, *model_, deal);
  loader.start_epoch(0);
  double stopped = stop();
  while (stopped == 0.0) {
    const std::optional<Batch> loaded = loader.next();
    if (!loaded) break;
    const Batch batch = upload_(*loaded);
    const int64_t micro = batch.index % deal.accumulate;
    compute_.samples = batch.samples;
    const Step result = model_->forward(compute_, batch, carried.before(batch, micro));
    evaluation_->add(result, batch);
    watch(result, batch);
    carried.after(micro, result.after);
    carried.commit();
    start_upload([&] { return loader.ahead(); });
    stopped = stop();
  }
  compute_.training = true;
  compute_.recording = true;
  const TallyValues values = total(*evaluation_);
  sum_over_workers({&stopped, 1});
  return stopped > 0.0 ? std::nullopt : std::optional(values);
}

void Replica::share_carried() {
  std::vector<Bytes> tensors;
  for (const Tensor& tensor : carried_->whole()) tensors.push_back({tensor.raw(), tensor.bytes()});
  if (tensors.empty()) return;
  carried_->keep_own();
  compute_.stream.synchronize();  // the communicator reads them next
  exchange([&] { communicator().all_reduce(tensors, compute_.compute, ReduceOp::sum)->wait(); });
}

std::vector<SavedState> Replica::state() {
  std::vector<SavedState> saved = synchronizer_->state();
  std::set<std::string> named;
  for (const SavedState& state : saved) named.insert(state.name);
  const Sharing sharing = synchronizer_->replicas_differ() ? Sharing::per_rank : Sharing::shared;
  const auto add_arena = [&](const std::string& name, const Tensor& arena,
                             std::span<const Segment> segments) {
    for (const Segment& segment : segments) {
      const std::string path = name + "/" + segment.name;
      if (named.count(path) == 0)  // the synchronizer has its own rule for this part
        saved.push_back({path, FlatParameters::view(arena, segment), sharing});
    }
  };
  add_arena("weight", parameters_->weight(), parameters_->all_segments());
  for (const std::string& arena : optimizer_->arenas())
    add_arena(arena, parameters_->state(arena), parameters_->segments());
  std::ranges::copy(optimizer_->counters(), std::back_inserter(saved));
  for (const Buffer* buffer : parameters_->buffers())
    saved.push_back({"buffer/" + buffer->name, buffer->value});
  if (ema_) std::ranges::copy(ema_->state(sharing), std::back_inserter(saved));
  if (options_.schedule.of_kind.plateau)
    saved.push_back({.name = "schedule",
                     .tensor = plateau_.state(),
                     .sharing = Sharing::shared,
                     .check = Plateau::check});
  saved.push_back(tally_->state());
  for (size_t i = 0; i < carried_->whole().size(); ++i)
    saved.push_back({.name = concat("carry/", i),
                     .tensor = carried_->whole()[i],
                     .sharing = Sharing::shared,
                     .within_epoch = true});
  saved.push_back({.name = "skipped_in_a_row",
                   .tensor = skipped_in_a_row_,
                   .sharing = Sharing::shared,
                   .check = check_counts});
  saved.push_back({.name = "traffic",
                   .tensor = traffic_,
                   .on_resize = OnResize::redistribute_sum,
                   .check = check_counts});
  return saved;
}

std::string Replica::numerics() const {
  return concat(compute_backend_->numerics(), ", ", compute_.threads, " threads, ", comm_.threads,
                " comm threads, ", machine());
}

}  // namespace wisp
