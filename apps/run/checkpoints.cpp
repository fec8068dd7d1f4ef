#include "apps/run/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

#include "apps/run/saved_files.h"
#include "apps/setup/unusable_values.h"
#include "core/base/error.h"
#include "core/base/number.h"
#include "core/copy.h"
#include "core/io/checkpoint.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

constexpr const char* kHeldOut = "held_out";               // absent: no held-out samples
constexpr const char* kStepsPerEpoch = "steps_per_epoch";  // absent: unknown
constexpr int kMostWorkers = 1 << 20;
constexpr size_t kListed = 12;  // tensors that a notice lists

std::string fact(const CheckpointFacts& facts, const std::string& name) {
  const auto found = facts.find(name);
  WISP_CHECK(found != facts.end(), "the checkpoint's manifest does not say ", name);
  return found->second;
}

template <class T>
T number(std::string_view text, const std::string& name) {
  const std::optional<T> value = number_in<T>(text);
  WISP_CHECK(value, "the checkpoint's manifest says ", name, " = '", text, "', expected a number");
  return *value;
}

template <class T>
void read(const CheckpointFacts& facts, const std::string& name, T& value) {
  value = number<T>(fact(facts, name), name);
}

/// Reads a number of epochs, steps or workers.
template <class T>
void read_count(const CheckpointFacts& facts, const std::string& name, int64_t least, int64_t most,
                T& value) {
  read(facts, name, value);
  WISP_CHECK(value >= least && value <= most, "the checkpoint's manifest says ", name, " = ", value,
             ", expected ", least, most == kMostSteps ? " or more" : concat(" to ", most));
}

int workers_of(const CheckpointFacts& facts) {
  int workers = 0;
  read_count(facts, "workers", 1, kMostWorkers, workers);
  return workers;
}

/// Describes values with which nothing can be computed; no text if there are none.
void tell_unusable(const std::string& directory, const std::vector<std::string>& lines,
                   std::vector<std::string>& notices) {
  if (lines.empty()) return;
  std::string text = concat(directory, ": has the model diverged?");
  for (size_t i = 0; i < std::min(lines.size(), kListed); ++i) text += "\n  " + lines[i];
  if (lines.size() > kListed) text += concat("\n  and ", lines.size() - kListed, " more tensors");
  notices.push_back(text);
}

/// A reader of a checkpoint's files for evaluation.
class EvaluatedFiles {
 public:
  explicit EvaluatedFiles(const std::string& directory) : shared_(shared_file(directory)) {
    const int workers = workers_of(checkpoint_facts(directory));
    for (int rank = 0; rank < workers; ++rank)
      own_.push_back(std::make_unique<CheckpointReader>(rank_file(directory, rank)));
  }

  /// Reads the first of `names` that exists: the shared one; else rank 0's, or the mean over
  /// workers if their weights differ. Read the weights before the buffers.
  void read_first(const std::vector<std::string>& names, bool is_weight, const Tensor& into) {
    for (const std::string& name : names) {
      if (!shared_.has(name) && !own_.front()->has(name)) continue;
      read(name, is_weight, into);
      const std::string words = unusable_values(name, into);
      if (!words.empty()) unusable_.push_back(concat(name, ": ", words));
      return;
    }
    throw Error(concat((is_weight ? shared_ : *own_.front()).path(), ": has no tensor ",
                       names.back(), "; is it of another model?"));
  }

  /// A line for each tensor with unusable_values().
  const std::vector<std::string>& unusable() const { return unusable_; }

 private:
  void read(const std::string& name, bool is_weight, const Tensor& into) {
    if (shared_.has(name)) return shared_.read(name, into);
    differ_ = differ_ || is_weight;
    if (differ_) return read_mean(name, into);
    own_.front()->read(name, into);
  }
  /// Computes the mean as the workers do: the sum in order of ranks, times 1 / N.
  void read_mean(const std::string& name, const Tensor& into) const {
    into.clear();
    const Tensor own(into.shape(), into.dtype());
    dispatch_float(into.dtype(), "checkpoint", [&](auto zero) {
      using T = decltype(zero);
      T* sum = into.data<T>();
      for (const auto& file : own_) {
        file->read(name, own);
        for (int64_t i = 0; i < into.numel(); ++i) sum[i] += own.data<T>()[i];
      }
      const auto share = static_cast<T>(1.0 / static_cast<double>(own_.size()));
      for (int64_t i = 0; i < into.numel(); ++i) sum[i] *= share;
    });
  }

  const CheckpointReader shared_;
  std::vector<std::unique_ptr<CheckpointReader>> own_;  // by rank
  bool differ_ = false;
  std::vector<std::string> unusable_;
};

void read_evaluated(const Stream& stream, const std::string& directory,
                    const FlatParameters& parameters, std::vector<std::string>& notices) {
  EvaluatedFiles files(directory);
  for (const Segment& segment : parameters.all_segments()) {
    const Tensor weight = FlatParameters::view(parameters.weight(), segment);
    write_from_host(stream, weight, [&](const Tensor& host) {
      files.read_first({"ema/" + segment.name, "weight/" + segment.name}, /*is_weight=*/true, host);
    });
  }
  for (const Buffer* buffer : parameters.buffers()) {
    write_from_host(stream, buffer->value, [&](const Tensor& host) {
      files.read_first({"ema_buffer/" + buffer->name, "buffer/" + buffer->name},
                       /*is_weight=*/false, host);
    });
  }
  tell_unusable(directory, files.unusable(), notices);
}

void check_held_out(const std::string& directory, const CheckpointFacts& facts,
                    const Replica& replica) {
  int64_t held_out = 0;
  if (facts.count(kHeldOut) > 0) read(facts, kHeldOut, held_out);
  WISP_CHECK(held_out == replica.held_out(), directory,
             " was saved with data.validation = ", held_out, ", but this run has ",
             replica.held_out(),
             "; another split could validate on samples that the weights were trained on");
}

/// Describes the rules for workers' own state when their number changes: "residual, tally: the sum
/// over the workers is divided among them; buffer: taken from …".
std::string describe_rules(const std::vector<SavedState>& state) {
  std::map<OnResize, std::set<std::string>> kinds;
  for (const SavedState& saved : state) {
    if (saved.sharing == Sharing::per_rank)
      kinds[saved.on_resize].insert(saved.name.substr(0, saved.name.find('/')));
  }
  const std::map<OnResize, const char*> words = {
      {OnResize::redistribute_sum, "the sum over the workers is divided among them"},
      {OnResize::owner, "each element is taken from the worker that had it"},
      {OnResize::repeat, "taken from the old workers in turn"},
      {OnResize::zero, "starts at zero"}};
  std::string text;
  for (const auto& [rule, names] : kinds)
    text +=
        fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(names, ", "), words.at(rule));
  if (std::ranges::count(state, "engaged", &SavedState::name) > 0)
    text += "; which layers are compressed is decided again (wisp plan shows it)";
  return text;
}

}  // namespace

CheckpointFacts Position::facts() const {
  CheckpointFacts facts;
  const auto put = [&](const char* name, auto value) { facts[name] = fmt::format("{}", value); };
  put("epoch", epoch);
  put("in_epoch", in_epoch);
  put(kStepsPerEpoch, steps_per_epoch);
  put("step", step);
  put("skipped", skipped);
  facts["tally"] = fmt::format("{}", fmt::join(tally.sums, " "));
  put("best_step", best_step);
  put("best_value", best_value);
  return facts;
}

Position Position::from(const CheckpointFacts& facts) {
  Position position;
  const auto count = [&](const char* name, int64_t least, int64_t most, int64_t& value) {
    read_count(facts, name, least, most, value);
  };
  count("epoch", 0, kMostSteps, position.epoch);
  count("step", 0, kMostSteps, position.step);
  if (facts.count(kStepsPerEpoch) > 0)
    count(kStepsPerEpoch, 0, kMostSteps, position.steps_per_epoch);
  const int64_t steps = position.steps_per_epoch;
  count("in_epoch", 0, steps > 0 ? std::min(steps, position.step) : position.step,
        position.in_epoch);
  count("skipped", 0, position.step, position.skipped);
  std::istringstream sums(fact(facts, "tally"));
  for (std::string sum; sums >> sum;) position.tally.sums.push_back(number<double>(sum, "tally"));
  naming("the checkpoint's manifest: tally", [&] { position.tally.check(); });
  count("best_step", -1, position.step, position.best_step);
  read(facts, "best_value", position.best_value);
  return position;
}

void Checkpoints::save(Replica& replica, const Position& position,
                       const std::function<void()>& publish) const {
  const std::string tmp = saving_path(folder_);
  replica.share_carried();
  const std::vector<SavedState> state = replica.state();
  if (replica.rank() == 0) {
    prepare_directory(tmp);
    write_state(replica.context().stream, shared_file(tmp), state, Sharing::shared);
  }
  replica.barrier();
  write_state(replica.context().stream, rank_file(tmp, replica.rank()), state, Sharing::per_rank);
  replica.barrier();
  if (replica.rank() == 0) {
    CheckpointFacts facts = position.facts();
    facts["workers"] = std::to_string(replica.workers());
    facts["methods"] = replica.methods();
    facts["layout"] = replica.layout();
    facts["numerics"] = replica.numerics();
    if (replica.held_out() > 0) facts[kHeldOut] = std::to_string(replica.held_out());
    publish();
    publish_directory(tmp, checkpoint_path(folder_, position.step), facts);
    prune(position);
  }
  replica.barrier();
}

void Checkpoints::prune(const Position& position) const {
  if (options_.keep == 0) return;
  std::vector<int64_t> steps = checkpoint_steps(folder_);
  for (size_t i = 0; i + static_cast<size_t>(options_.keep) < steps.size(); ++i) {
    if (options_.best && steps[i] == position.best_step) continue;
    remove_checkpoint(folder_, steps[i]);
  }
}

bool Checkpoints::has(Replica& replica, int64_t step) const {
  return replica.rank_0_says(
      [&] { return std::ranges::binary_search(checkpoint_steps(folder_), step); });
}

bool Checkpoints::any(Replica& replica) const {
  return replica.rank_0_says([&] { return !checkpoint_steps(folder_).empty(); });
}

/// The step of the newest undamaged checkpoint.
int64_t Checkpoints::last(const std::vector<int64_t>& steps,
                          std::vector<std::string>& notices) const {
  std::string first_damage;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      verify_checkpoint(find_checkpoint(checkpoint_path(folder_, *step)));
      if (!first_damage.empty())
        notices.push_back(first_damage + "; going on from step " + std::to_string(*step));
      return *step;
    } catch (const Error& damage) {
      if (first_damage.empty()) first_damage = damage.what();
    }
  }
  throw Error(first_damage);
}

/// The step of the checkpoint to load, which is undamaged.
int64_t Checkpoints::choose(const std::string& which, std::vector<std::string>& notices) const {
  const std::vector<int64_t> steps = checkpoint_steps(folder_);
  WISP_CHECK(!steps.empty(), folder_, ": there is no checkpoint");
  if (which == "last") return last(steps, notices);
  int64_t step = -1;
  std::string missing;
  if (which == "best") {
    const int64_t newest = last(steps, notices);
    const std::string directory = find_checkpoint(checkpoint_path(folder_, newest));
    step = Position::from(checkpoint_facts(directory)).best_step;
    if (step < 0) return newest;
    missing = concat("the checkpoint of step ", step,
                     ", which did best on the validation split, was not kept "
                     "(checkpoint.best)");
  } else {
    read({{"step", which}}, "step", step);
    missing = concat("there is no checkpoint of step ", step);
  }
  WISP_CHECK(std::ranges::binary_search(steps, step), folder_, ": ", missing,
             "; there are checkpoints of steps ", fmt::format("{}", fmt::join(steps, ", ")));
  verify_checkpoint(find_checkpoint(checkpoint_path(folder_, step)));
  return step;
}

/// The directory of the checkpoint that rank 0 chooses for all. Collective.
std::string Checkpoints::choose(Replica& replica, const std::string& which,
                                std::vector<std::string>& notices) const {
  double chosen = 0.0;
  if (replica.rank() == 0) chosen = static_cast<double>(choose(which, notices));
  replica.sum_over_workers({&chosen, 1});  // other ranks add zero
  const auto step = static_cast<int64_t>(chosen);
  const std::string path = checkpoint_path(folder_, step);
  const bool seen = std::ranges::binary_search(checkpoint_steps(folder_), step);
  replica.check_agreement(
      {concat("the checkpoint of step ", step, " (all ranks have to see one run directory)"),
       seen ? "manifest " + checkpoint_checksum(find_checkpoint(path)) : "none in its folder"});
  return find_checkpoint(path);
}

std::vector<std::string> Checkpoints::load_evaluated(const FlatParameters& parameters,
                                                     const std::string& which) const {
  std::vector<std::string> notices;
  read_evaluated(Stream::immediate(),
                 find_checkpoint(checkpoint_path(folder_, choose(which, notices))), parameters,
                 notices);
  return notices;
}

std::vector<std::string> Checkpoints::load_evaluated(Replica& replica,
                                                     const std::string& which) const {
  std::vector<std::string> notices;
  const std::string directory = choose(replica, which, notices);
  check_held_out(directory, checkpoint_facts(directory), replica);
  read_evaluated(replica.context().stream, directory, replica.parameters(), notices);
  return notices;
}

Checkpoints::Loaded Checkpoints::load(Replica& replica, const std::string& which) const {
  Loaded loaded;
  const std::string directory = choose(replica, which, loaded.notices);
  const CheckpointFacts facts = checkpoint_facts(directory);
  loaded.position = Position::from(facts);
  const std::string path = checkpoint_path(folder_, loaded.position.step);
  WISP_CHECK(directory == path || directory == path + ".old", directory,
             ": its manifest says step = ", loaded.position.step, "; was it renamed?");

  const std::string methods = fact(facts, "methods");
  WISP_CHECK(methods == replica.methods(), directory, " holds state of compression.method ",
             methods, ", but this run has ", replica.methods(),
             "; resume with the same compression.method and compression.policy");
  check_held_out(directory, facts, replica);
  const int workers = workers_of(facts);
  WISP_CHECK(workers == replica.workers() || !replica.replicas_differ(), directory,
             " holds separate weights of ", workers, " workers (compression.method ",
             replica.methods(), "); resume with workers=", workers,
             ", or export their mean and start a new run with model.init=FILE");
  WISP_CHECK(
      fact(facts, "layout") == replica.layout(), directory,
      " holds state for other buckets and units, or for another gossip graph; resume with the "
      "method options, compression.bucket_bytes and compression.encode_bytes that the run had "
      "(their defaults are larger on a GPU)");
  const Stream& stream = replica.context().stream;
  std::vector<std::string> unusable =
      read_shared(directory, stream, replica.state(), loaded.position.in_epoch > 0);
  std::ranges::copy(
      read_own(directory, stream, replica.state(), {replica.rank(), replica.workers()}, workers),
      std::back_inserter(unusable));
  if (replica.rank() == 0) {
    tell_unusable(directory, unusable, loaded.notices);
    if (workers != replica.workers())
      loaded.notices.push_back(fmt::format("{} was saved by {} workers and is resumed by {}: {}",
                                           directory, workers, replica.workers(),
                                           describe_rules(replica.state())));
    if (const std::string numerics = fact(facts, "numerics"); numerics != replica.numerics())
      loaded.notices.push_back(
          fmt::format("{} was computed with {}, this run has {}: from here on "
                      "its bits may differ from those of an undisturbed run",
                      directory, numerics, replica.numerics()));
  }
  replica.barrier();
  return loaded;
}

}  // namespace wisp
