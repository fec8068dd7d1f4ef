#include "apps/train/trainer.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>

#include "apps/inference/inference.h"
#include "apps/run/run_identity.h"
#include "apps/run/run_record.h"
#include "apps/run/shared_folder.h"
#include "apps/setup/prepared.h"
#include "apps/setup/shared_configuration.h"
#include "apps/setup/weights.h"
#include "apps/train/training.h"
#include "core/base/error.h"
#include "core/device/device_remarks.h"
#include "core/device_words.h"
#include "core/io/output_file.h"
#include "core/io/visible_text.h"
#include "core/ops.h"

namespace wisp {
namespace {

/// The resolved value of a string key, without quotes.
std::string chosen(const Prepared& run, const std::string& name) {
  for (const ConfigKey& key : run.config().keys()) {
    if (key.name == name) return key.value.substr(1, key.value.size() - 2);
  }
  return "";
}

std::string workers_line(const Prepared& run) {
  const TrainOptions& options = run.options();
  if (options.workers == 1) return "workers: 1, on " + options.device;
  return fmt::format("workers: {} {}, on {}, method {}", options.workers,
                     world().processes() ? "processes" : "threads", options.device,
                     chosen(run, "compression.method"));
}

/// Says what limits the workers' threads below an equal share of the machine.
std::string threads_line(const TrainOptions& options) {
  if (options.threads > 0) return "";
  const CoreShare share = core_share(options.workers);
  if (share.limit.empty()) return "";
  return fmt::format("\nthreads: {} of each worker ({})", share.threads, share.limit);
}

/// The first lines of the run's output, without the last newline.
std::string opening_text(const Prepared& run, const RunFacts& facts, const std::string& directory) {
  int64_t parameters = 0;
  for (const LayerPlan& layer : run.exchange().layers) parameters += layer.numel;
  std::string samples;
  for (const SplitFacts& part : facts.data)
    samples += fmt::format(", {} {}", part.split, part.samples);
  return fmt::format("model: {}, {} parameters to train\ndata: {}{}\n{}{}\nrun directory: {}",
                     run.options().model, parameters, chosen(run, "data.name"), samples,
                     workers_line(run), threads_line(run.options()), visible(directory));
}

/// Checks model.init before anything is written. Returns a notice for each tensor it leaves as
/// drawn.
std::vector<std::string> check_init(const Prepared& run) {
  std::vector<std::string> notices;
  const std::string& file = run.options().init;
  if (file.empty()) return notices;
  for (const std::string& name : check_weights(file, run))
    notices.push_back(name + " starts from random weights: " + file +
                      " has another number of classes");
  return notices;
}

/// Notes on a resumed run that begins: it has no checkpoint.
std::vector<std::string> about_a_start(const RunDirectory& directory, const Changes& changes) {
  if (directory.goes_on()) return {};
  if (!directory.held_run()) return {directory.path() + " holds no run yet; a new one starts"};
  std::vector<std::string> notes = {
      directory.path() + " holds a run without a checkpoint; it starts from its beginning"};
  if (!changes.str().empty()) notes.push_back("it starts with changes: " + changes.str());
  return notes;
}

/// The summary of a run of which nothing is left to train; nothing if it was killed before it wrote
/// one. Throws Error if one could only be made with other values than those of the run.
std::optional<Summary> summary_of_ended(const RunDirectory& directory, const Changes& changes) {
  std::optional<Summary> summary = summary_of(directory.path());
  if (summary) return summary;
  const std::string path = directory.file(kSummaryFile);
  if (std::filesystem::exists(path)) {
    const std::string config = Summary::from_json(path).config;
    WISP_CHECK(config.empty() || config == digest_of_run(directory.path()), path,
               " is of another configuration than ", kConfigFile,
               " there, which was changed since; nothing is left to train, so ", kConfigFile,
               " needs the run's own values again");
  }
  WISP_CHECK(!changes.of_run(), directory.path(),
             ": nothing is left to train, but the run was ended before it wrote its ", kSummaryFile,
             ", which needs the run's own values; resume without these changes: ", changes.str());
  return std::nullopt;
}

/// Makes the directory that of a run that diverged, perhaps in its first step.
void write_divergence(RunDirectory& directory, const Config& config, const RunFacts& facts,
                      const std::string& cause) {
  directory.begin();
  directory.write_identity(config, facts);
  if (!std::filesystem::exists(directory.file(kMetricsFile)))
    write_file(directory.file(kMetricsFile), "");
  write_file(directory.file(kDivergedFile), cause + "\n");
}

/// Evaluates a split over all workers, by class too if `by_class` is set. Collective.
Evaluation evaluate(Replica& replica, const Prepared& run, Split split, bool by_class) {
  const std::unique_ptr<Loader> loader = run.loader(split, replica.rank());
  const Context& context = replica.context();
  const DeviceWords counts =
      by_class ? DeviceWords(context, {run.facts().classes, 2}, DType::f64) : DeviceWords();
  const TallyValues values = *replica.evaluate_as_is(
      *loader, [] { return false; },
      [&](const Step& step, const Batch& batch) {
        if (by_class) count_correct_by_class(step.output, batch.targets, counts.device());
      });
  Evaluation evaluation{values.mean_loss(), {}, values.targets(), {}};
  for (size_t i = 0; i < run.metrics().size(); ++i)
    evaluation.metrics.push_back(values.value(run.metrics()[i], i));
  if (!by_class) return evaluation;
  counts.fetch(context.stream);
  context.stream.synchronize();
  const auto* words = counts.host().data<double>();
  std::vector<double> sums(words, words + counts.host().numel());  // correct, targets
  replica.sum_over_workers(sums);
  for (size_t c = 0; 2 * c < sums.size(); ++c)
    evaluation.classes.push_back(
        {static_cast<int64_t>(sums[2 * c + 1]), static_cast<int64_t>(sums[2 * c])});
  return evaluation;
}

}  // namespace

std::optional<Summary> train(Config config, const TrainRequest& request) {
  Prepared run(std::move(config));
  const TrainOptions& options = run.options();
  const bool resume = request.open == RunDirectory::Open::resume;
  std::vector<NamedValue> told = configuration_of(run.config().keys());
  told.push_back({"--resume", resume ? "yes" : "no"});
  check_processes_agree(options, told);
  const int first = world().rank;  // first rank of this process
  RunDirectory directory(request.out, first == 0 ? request.open : RunDirectory::Open::follow);
  run.load();
  const RunFacts facts = RunFacts::of(run);
  facts.json();  // throws for names that the file cannot hold
  check_processes_agree(options, data_of(facts, resume ? "" : options.init));
  std::optional<Reporter> reporter;
  Changes changes;
  std::vector<std::string> of_init;
  if (first == 0) {
    directory.make();
    if (resume) {
      check_classes(run.facts(), RunFacts::read(request.out).facts, request.out);
      changes = changes_since(directory, run.config(), facts);
    }
    if (!directory.goes_on()) of_init = check_init(run);
  }
  check_shared_folder(options, directory);
  if (first == 0) {
    reporter.emplace(directory, options, facts, request.quiet);
    reporter->say(opening_text(run, facts, directory.path()));
    const std::vector<std::string> of_resume =
        resume ? about_a_start(directory, changes) : std::vector<std::string>();
    for (const auto& notices : {run.notices(), run.passed_over(), of_init, of_resume}) {
      for (const std::string& notice : notices) reporter->warn(notice);
    }
  }

  const std::string trace_path = directory.file(kTraceFile);
  std::vector<std::string> traces;
  std::optional<Summary> summary;
  bool begun = false, trained = true;
  int64_t steps = 0;
  std::atomic<bool> diverged = false;
  const auto train_worker = [&](Replica& replica) {
    const int rank = replica.rank();
    Training training(run, replica, directory, facts, rank == 0 ? &*reporter : nullptr,
                      request.stop);
    const bool goes_on = resume && training.resume(rank == 0 ? changes : Changes());
    if (!goes_on) training.start();
    bool finished = false;
    try {
      finished = training.run();
    } catch (const Diverged&) {
      diverged = true;
      throw;
    }
    std::optional<Summary> own;
    std::vector<std::string> spans;
    if (training.begun()) {
      if (finished) own = training.summary();
      spans = training.gather_spans(trace_path);
    } else {  // nothing was left to do
      const bool ended = replica.rank_0_says([&] {
        own = summary_of_ended(directory, changes);
        return own.has_value();
      });
      if (!ended) own = training.summary();
      if (ended && rank != 0) own.emplace();  // that it ended is all that the others tell
    }
    if (rank != first) return;
    summary = own;
    begun = training.begun();
    trained = training.trained();
    steps = training.step();
    traces = std::move(spans);
  };
  try {
    run_replicas(run, train_worker, options.link);
  } catch (const Error& failure) {
    if (reporter && diverged) write_divergence(directory, run.config(), facts, failure.what());
    throw;
  }
  if (!reporter) return summary;
  if (options.trace.steps > 0 && trained)
    write_trace(trace_path, traces, summary ? bottleneck_line(summary->times) : "");
  if (begun && !summary) {
    reporter->stopped(steps);
    return std::nullopt;
  }
  if (!begun)
    reporter->nothing_left(steps,
                           changes.of_run() || !changes.of_workers.empty() ? changes.str() : "");
  summary->config = digest_of_run(directory.path());
  if (begun || !summary_of(directory.path()))
    write_file(directory.file(kSummaryFile), summary->json());
  reporter->finish(*summary);
  return summary;
}

RunEvaluation evaluate_run(const std::string& run_path, std::span<const std::string> overrides,
                           const std::string& checkpoint, const AskModel& ask, bool by_class) {
  const RunDirectory directory(run_path, RunDirectory::Open::read);
  Prepared run(Config::load(directory.file("config.toml"), overrides));
  check_processes_agree(run.options(), configuration_of(run.config().keys()));
  check_classes(run.facts(), RunFacts::read(run_path).facts, run_path);
  std::optional<Inference> model;  // made first: its errors come before the work
  if (ask && world().rank == 0) model.emplace(run_path, overrides, checkpoint);
  run.load();
  check_processes_agree(run.options(), data_of(RunFacts::of(run), ""));
  RunEvaluation evaluation{.metrics = run.metrics()};
  if (world().rank == 0) evaluation.notices = run.passed_over();
  run_replicas(run, [&](Replica& replica) {
    const std::vector<std::string> notices =
        Checkpoints(directory.file("checkpoints"), run.options().checkpoint)
            .load_evaluated(replica, checkpoint);
    const Evaluation test = evaluate(replica, run, Split::test, by_class);
    std::optional<Evaluation> validation;
    if (run.has_validation()) validation = evaluate(replica, run, Split::validation, by_class);
    if (replica.rank() != world().rank) return;  // another worker of this process than the first
    evaluation.notices.insert(evaluation.notices.end(), notices.begin(), notices.end());
    evaluation.test = test;
    evaluation.validation = validation;
    for (const std::string& remark : take_device_remarks()) evaluation.notices.push_back(remark);
  });
  if (model) ask(run, *model);
  return evaluation;
}

}  // namespace wisp
