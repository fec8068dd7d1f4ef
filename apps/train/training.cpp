#include "apps/train/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/copy.h"
#include "core/device/device_remarks.h"
#include "core/io/checksum.h"
#include "core/io/trace.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {
namespace {

constexpr double kGapUs = 1e4;  // gap in a trace between the spans of two processes

/// The begin of the first span by the system's clock; infinity if there is none.
double begin_us(const Trace& trace) {
  double begin = std::numeric_limits<double>::infinity();
  for (int lane = 0; lane < kLaneCount; ++lane)
    for (const Trace::Span& span : trace.spans(static_cast<Lane>(lane)))
      begin = std::min(begin, clock_origin_us() + span.begin_us);
  return begin;
}

}  // namespace

Training::Training(const Prepared& run, Replica& replica, RunDirectory& directory,
                   const RunFacts& facts, Reporter* reporter, std::function<bool()> stop)
    : run_(run),
      directory_(directory),
      options_(run.options()),
      reporter_(reporter),
      stop_(std::move(stop)),
      checkpoints_(directory.file(kCheckpointsFolder), run.options().checkpoint),
      replica_(replica),
      train_(run.loader(Split::train, replica.rank())),
      validation_(run.loader(Split::validation, replica.rank())),
      test_(run.loader(Split::test, replica.rank())),
      facts_(facts),
      record_path_(run.options().record.out.empty() ? directory.file(kGradientsFolder)
                                                    : run.options().record.out),
      position_{.steps_per_epoch = train_->batches() / run.options().accumulate} {}

void Training::warn(const std::vector<std::string>& texts) {
  if (!reporter_) return;
  for (const std::string& text : texts) reporter_->warn(text);
}

void Training::start() {
  warn(run_.exchange().remarks);
  if (!options_.init.empty()) replica_.start_from(options_.init, facts_.facts);
  check_weights();
  start_record();
}

/// Throws Error unless all workers start from the same weights. Not called where each resumes its
/// own.
void Training::check_weights() {
  const Tensor weight = fetch(replica_.context().stream, replica_.parameters().weight());
  replica_.check_agreement(
      {concat("weights before step ", position_.step),
       checksum_text(crc32c(weight.raw(), static_cast<size_t>(weight.bytes())))});
}

bool Training::resume(const Changes& changes) {
  if (!checkpoints_.any(replica_)) return false;
  Checkpoints::Loaded loaded = checkpoints_.load(replica_);
  const int64_t now = position_.steps_per_epoch;
  const int64_t before = std::exchange(loaded.position.steps_per_epoch, now);
  position_ = loaded.position;
  const bool same = before > 0 ? before == now : position_.in_epoch <= now;
  WISP_CHECK(same || position_.in_epoch == 0, "the run stopped after ", position_.in_epoch,
             before > 0 ? concat(" of the ", before) : "", " steps of an epoch, which now has ",
             now, "; resume with the same data, train.batch and, for a text, data.window");
  const bool within_epoch = position_.in_epoch > 0 && !epoch_trained();
  WISP_CHECK(changes.of_samples.empty() || !within_epoch, "the run stopped after ",
             position_.in_epoch, " of the ", now,
             " steps of an epoch, and the rest of the epoch would take other samples: ",
             fmt::format("{}", fmt::join(changes.of_samples, "; ")),
             "; resume without these changes, which are possible only between epochs");
  if (!replica_.replicas_differ()) check_weights();
  resumed_ = position_;
  warn(loaded.notices);
  if (done()) return true;
  start_record();
  if (!reporter_) return true;
  reporter_->say(fmt::format("goes on after step {}", position_.step));
  if (!changes.str().empty())
    reporter_->warn(concat("this run is resumed with changes: ", changes.str()));
  return true;
}

/// Makes the run directory that of this run, once there is something to keep. Until then it stays
/// as it was, so that a start that fails harms nothing.
void Training::claim_directory() {
  if (std::exchange(begun_, true)) return;
  if (reporter_) {
    directory_.begin();
    if (!resumed_) {
      directory_.write_identity(run_.config(), facts_);
      reporter_->open_metrics();
    } else {
      reporter_->resume_metrics(resumed_->step, [this](const std::string& type, int64_t step) {
        // an epoch whose evaluation is due will be evaluated again
        const bool again = resumed_->in_epoch == resumed_->steps_per_epoch && type == "epoch";
        return step < resumed_->step || (step == resumed_->step && !again);
      });
    }
  }
  if (!record_) return;
  replica_.barrier();  // rank 0 may have removed an old run's record
  record_->open();
}

void Training::start_record() {
  if (options_.record.every > 0)
    record_.emplace(replica_, options_.record, record_path_, position_.step);
}

bool Training::run() {
  while (!done()) {
    if (!(train_epoch() && finish_epoch())) {
      save();
      return false;
    }
  }
  return true;
}

bool Training::done() const {
  return position_.epoch >= options_.epochs ||
         (options_.max_steps > 0 && position_.step >= options_.max_steps && !epoch_trained());
}

Batch Training::next_batch() {
  if (options_.one_batch && first_batch_) return *first_batch_;
  std::optional<Batch> batch = train_->next();
  WISP_CHECK(batch, "the loader ran out of batches in epoch ", position_.epoch);
  if (options_.one_batch) first_batch_ = batch;
  return *batch;
}

void Training::start_epoch() {
  if (!options_.one_batch) {
    train_->start_epoch(position_.epoch, position_.in_epoch * options_.accumulate);
  } else if (!first_batch_) {
    train_->start_epoch(0);
  }
}

/// Trains the rest of the epoch, or up to max_steps. False if `stop` ended it early on some rank.
bool Training::train_epoch() {
  if (epoch_trained()) return true;
  start_epoch();
  const double begin = now_us();
  const int64_t first = position_.step;
  double work = 0.0;
  bool stop = false;
  while (!stop && !epoch_trained() && !done()) {
    if (stop_()) replica_.synchronizer().request_stop();
    if (record_) record_->begin(position_.step);
    const StepReport report = replica_.step(
        position_.step, position_.epochs(), [this] { return next_batch(); },
        [this] { return options_.one_batch ? first_batch_ : train_->ahead(); });
    claim_directory();
    if (record_ && report.outcome != Outcome::skipped) record_->write();
    stop = report.outcome == Outcome::stop;
    position_.skipped += report.outcome == Outcome::skipped;
    ++position_.step;
    ++position_.in_epoch;
    ++steps_here_;
    work += report.work;
    work_here_ += report.work;
    evaluated_.reset();
    const StepTimes times = times_of(report);
    for (const auto& [name, time] : kStepTimes) times_.*time += times.*time;
    const double seconds = (now_us() - begin) * 1e-6;
    const StepLine line{position_, report, work / seconds,
                        seconds / static_cast<double>(position_.step - first),
                        spent(seconds * 1e6)};
    const bool ends = epoch_trained() || done();
    if (ends || position_.step % options_.log_every == 0) {
      const TallyValues tally = replica_.tally();
      position_.tally += tally;
      if (reporter_) reporter_->metrics(line, tally);
    }
    if (reporter_) {
      reporter_->step(line);
      warn(take_device_remarks());
    }
    if (options_.distance_every > 0 && position_.step % options_.distance_every == 0) {
      const std::optional<double> distance = replica_.consensus_distance();
      if (reporter_ && distance) reporter_->consensus(position_.step, *distance);
    }
    const int64_t every = options_.checkpoint.every_steps;
    if (!stop && !ends && every > 0 && position_.step % every == 0) save();
  }
  train_us_ += now_us() - begin;
  return !stop;
}

/// Scores of the validation split; of the test set if there is no such split, and at the end of the
/// run. Nothing if `stop` said yes on some rank.
std::optional<Evaluated> Training::evaluate(bool end, const std::function<bool()>& stop) {
  Evaluated found;
  if (validation_) {
    found.validation = replica_.evaluate(*validation_, stop);
    if (!found.validation) return std::nullopt;
  }
  if (!validation_ || end) {
    std::optional<TestUnits> units;
    if (end) units.emplace(replica_, *run_.examples(Split::test));
    found.test = replica_.evaluate(*test_, stop, [&](const Step& step, const Batch& batch) {
      if (units) units->add(step, batch);
    });
    if (!found.test) return std::nullopt;
    if (units) found.test_units = units->total();
  }
  return found;
}

/// Evaluates, reports and saves the trained weights. False if `stop` ended it early on some rank.
bool Training::finish_epoch() {
  const bool whole = epoch_trained();
  const double epochs = position_.epochs();
  const int64_t epoch = position_.epoch + whole;
  const bool last = !whole || epoch >= options_.epochs ||
                    (options_.max_steps > 0 && position_.step >= options_.max_steps);
  const auto due = [](int64_t count, int64_t every) { return every > 0 && count % every == 0; };
  bool best = false;
  if (last || due(epoch, options_.eval_every)) {
    evaluated_ = evaluate(last, stop_);
    if (!evaluated_) return false;
    if (const std::optional<TallyValues>& found = evaluated_->validation) {
      if (whole && due(epoch, options_.eval_every)) replica_.observe(*found);
      const double value = found->score(facts_.metric(), 0);
      best = position_.best_step < 0 || std::isnan(position_.best_value) ||
             facts_.metric().better(value, position_.best_value);
      if (best) {
        position_.best_step = position_.step;
        position_.best_value = value;
      }
    }
  }
  claim_directory();
  tell_damage();
  std::optional<double> distance;
  if (options_.distance_every >= 0) distance = replica_.consensus_distance();
  if (reporter_)
    reporter_->epoch(epochs, position_.step, position_.tally, evaluated_.value_or(Evaluated{}),
                     distance, work_per_s(), spent());
  if (whole) {
    position_.epoch = epoch;
    position_.in_epoch = 0;
    position_.tally = {};
  }
  const CheckpointOptions& checkpoint = options_.checkpoint;
  if (last || (best && checkpoint.best) || due(epoch, checkpoint.every_epochs) ||
      due(position_.step, checkpoint.every_steps))
    save();
  return true;
}

/// Warns if more samples than before could not be read.
void Training::tell_damage() {
  double all = 0.0;  // samples: this worker's, then those of all
  std::string example;
  for (const Loader* loader : {train_.get(), validation_.get(), test_.get()}) {
    if (!loader || loader->damaged() == 0) continue;
    all += static_cast<double>(loader->damaged());
    example = loader->last_damage();
  }
  replica_.sum_over_workers({&all, 1});
  if (all <= damaged_) return;
  damaged_ = all;
  for (const std::string& of_rank : replica_.gather(example)) {
    if (of_rank.empty()) continue;
    return reporter_->warn(
        fmt::format("{} damaged samples were left out so far, for example {}", damaged_, of_rank));
  }
}

void Training::save() {
  claim_directory();
  if (reporter_) reporter_->sync();
  checkpoints_.save(replica_, position_, [this] {
    if (resumed_) directory_.write_identity(run_.config(), facts_);
  });
}

std::vector<std::string> Training::gather_spans(const std::string& path) {
  EarlierSpans earlier;
  double origin[] = {0.0};
  const std::vector<std::string> begins =
      replica_.gather(fmt::format("{}", begin_us(replica_.trace())));
  if (replica_.rank() == 0) {
    double begin = std::numeric_limits<double>::infinity();
    for (const std::string& of_rank : begins) begin = std::min(begin, std::stod(of_rank));
    earlier = read_earlier_spans(path, position_.step - steps_here_, options_.workers);
    const bool joins = !earlier.events.empty() && std::isfinite(begin);
    origin[0] = joins ? begin - earlier.end_us - kGapUs : clock_origin_us();
  }
  replica_.sum_over_workers(origin);
  std::vector<std::string> events =
      replica_.gather(replica_.trace().events(clock_origin_us() - origin[0]));
  if (!earlier.events.empty()) events.insert(events.begin(), earlier.events);
  return events;
}

/// `epoch_us`: time spent so far in the current epoch.
Spent Training::spent(double epoch_us) {
  return {(train_us_ + epoch_us) * 1e-6, replica_.bytes_sent()};
}

double Training::work_per_s() const {
  return train_us_ > 0 ? work_here_ / (train_us_ * 1e-6) : 0.0;
}

void Training::add_scores(const std::string& prefix, const TallyValues& values,
                          Summary& summary) const {
  for (size_t i = 0; i < facts_.metrics.size(); ++i) {
    const Metric& metric = facts_.metrics[i];
    summary.scores.emplace_back(prefix + metric.name, values.score(metric, i));
  }
}

/// Why the figures are not those of a trained model; empty if they are.
std::string Training::divergence() const {
  if (!std::isfinite(evaluated_->test->mean_loss()))
    return "the loss of the test set is not finite";
  if (evaluated_->validation && !std::isfinite(evaluated_->validation->mean_loss()))
    return "the loss of the validation split is not finite";
  if (const int64_t skipped = replica_.skipped_in_a_row(); skipped > 0)
    return skipped == 1 ? "the loss of the last step was not finite"
                        : concat("the loss of the last ", skipped, " steps was not finite");
  return "";
}

/// Scores the test set with the weights that did best on the validation split; nothing if their
/// checkpoint was not kept. Afterwards the replica is back at the last checkpoint.
std::optional<TallyValues> Training::test_the_best() {
  const int64_t best = position_.best_step;
  if (best < 0 || best == position_.step) return evaluated_->test;
  if (!checkpoints_.has(replica_, best)) {
    if (reporter_)
      reporter_->warn(
          fmt::format("the weights of step {} did best on the validation split, but were "
                      "not kept (checkpoint.best); test results are those of the last weights only",
                      best));
    return std::nullopt;
  }
  warn(checkpoints_.load_evaluated(replica_, "best"));
  const std::optional<TallyValues> found = replica_.evaluate_as_is(*test_);
  checkpoints_.load(replica_);  // back to the reported weights
  return found;
}

/// The numerics of all workers as one text if they agree, else each variant with the first rank
/// that has it. On rank 0 alone.
std::string Training::numerics_of_all() {
  std::vector<std::string> told;
  std::string all;
  const std::vector<std::string> by_rank = replica_.gather(replica_.numerics());
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::string& own = by_rank[rank];
    if (std::find(told.begin(), told.end(), own) != told.end()) continue;
    all += told.empty() ? own : concat("; rank ", rank, ": ", own);
    told.push_back(own);
  }
  return all;
}

Summary Training::summary() {
  if (!evaluated_) evaluated_ = evaluate(true, [] { return false; });
  const RunTraffic traffic = replica_.traffic();
  std::vector<double> times;
  for (const auto& [name, time] : kStepTimes) times.push_back(times_.*time);
  replica_.sum_over_workers(times);
  const double steps = std::max(1.0, traffic.steps);
  const double steps_here =
      std::max<double>(1.0, static_cast<double>(steps_here_ * options_.workers));
  Summary summary;
  summary.numerics = numerics_of_all();
  summary.diverged = divergence();
  add_scores("test_", *evaluated_->test, summary);
  summary.test_units = evaluated_->test_units;
  if (validation_) {
    add_scores("validation_", *evaluated_->validation, summary);
    if (const std::optional<TallyValues> best = test_the_best())
      add_scores("best_test_", *best, summary);
  }
  summary.work = facts_.facts.work;
  summary.work_per_s = work_per_s();
  summary.steps = position_.step;
  summary.skipped = position_.skipped;
  summary.bytes_raw = traffic.raw / steps;
  summary.bytes_encoded = traffic.encoded / steps;
  summary.bytes_sent = traffic.sent / steps;
  summary.bytes_received = traffic.received / steps;
  summary.bytes_other = traffic.other / steps_here;
  summary.bytes_distance = traffic.distance / steps_here;
  summary.reduction_encoded = reduction(traffic.raw, traffic.encoded);
  summary.reduction_sent = reduction(traffic.dense, traffic.sent);
  for (size_t i = 0; i < times.size(); ++i)
    summary.times.*kStepTimes[i].second = times[i] / steps_here;
  return summary;
}

}  // namespace wisp
