#include "apps/lab/codec_lab.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "apps/lab/lab_setup.h"
#include "compression/forwarding_compressor.h"
#include "core/backend.h"
#include "core/io/output_file.h"
#include "distributed/exchange/step_cost.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

double norm(const Tensor& tensor) {
  const auto* values = tensor.data<float>();
  return std::sqrt(std::accumulate(values, values + tensor.numel(), 0.0,
                                   [](double sum, double x) { return sum + x * x; }));
}

/// A compressor that keeps a copy of another one's payloads. Belongs to its worker's comm thread.
class PayloadTap final : public ForwardingCompressor {
 public:
  /// Appends every payload of `inner` to `kept` while `*open`, in the format of payload_R.bin.
  PayloadTap(std::unique_ptr<Compressor> inner, const bool* open, std::string* kept)
      : ForwardingCompressor(std::move(inner)), open_(open), kept_(kept) {}

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    ForwardingCompressor::encode(context, unit, info, round, outlets);
    if (!*open_) return;
    context.stream.synchronize();
    for (size_t i = 0; i < outlets.size(); ++i) {
      const int64_t bytes = outlets[i].used ? *outlets[i].used : outlets[i].capacity;
      add(static_cast<uint32_t>(round));
      add(static_cast<uint32_t>(i));
      add(static_cast<uint64_t>(bytes));
      kept_->append(reinterpret_cast<const char*>(outlets[i].data), static_cast<size_t>(bytes));
    }
  }

 private:
  template <class T>
  void add(T word) {
    kept_->append(reinterpret_cast<const char*>(&word), sizeof word);
  }

  const bool* open_;
  std::string* kept_;
};

/// The outcome of a step, on one rank or by rank.
struct LabStep {
  std::vector<float> result;  // for the optimizer
  bool compressed = false;
  StepCost cost;                             // of this rank
  std::vector<double> encoded, sent;         // bytes by rank
  std::vector<double> nonfinite, too_large;  // number of layers that counted as zero, by rank
  std::vector<std::pair<std::string, std::vector<double>>> norms;  // of per-element states, by rank
};

/// A worker of the replay. Belongs to its thread.
class LabWorker {
 public:
  LabWorker(const LabSetup& setup, Worker& worker, MemoryPool& pool)
      : setup_(setup),
        worker_(worker),
        input_(setup.request.inputs[static_cast<size_t>(worker.rank)]),
        whole_(setup.whole_of(worker.rank)),
        stream_(Stream::immediate()),
        comm_stream_(Stream::immediate()),
        backend_(setup.options.make_backend(pool, stream_)),
        comm_backend_(setup.options.make_backend(pool, comm_stream_, false)),
        compute_{stream_, *backend_, pool},
        comm_{comm_stream_, *comm_backend_, pool},
        layer_(setup.layer),
        loss_(compute_.zeros({1}, DType::f32)),
        trace_(worker.rank, {}) {
    compute_.seed = comm_.seed = static_cast<uint64_t>(setup.options.seed);
    compute_.rank = comm_.rank = worker.rank;
    compute_.threads = worker.threads;
    comm_.threads = setup.options.comm_threads;
    parameters_.emplace(compute_, std::vector<Parameter*>{&layer_}, std::vector<Buffer*>{});
    optimizer_ = setup.options.optimizer.recipe.make(*parameters_);
    Config config = setup.config;
    Methods chosen = choose_for(config, setup.options, layer_);
    for (Method& method : chosen.methods)
      method.compressor =
          std::make_unique<PayloadTap>(std::move(method.compressor), &last_, &payloads_);
    const AveragingOptions averaging{.clip = setup.options.clip,
                                     .overlap = false,
                                     .guard = setup.options.guard,
                                     .ratio = chosen.ratio};
    synchronizer_.emplace(worker.communicator, compute_, comm_, *parameters_,
                          std::move(chosen.methods), std::move(chosen.method_of), averaging,
                          trace_);
  }

  /// Makes a step. Collective.
  LabStep step(int64_t step) {
    const TrainOptions& options = setup_.options;
    const double epoch = epoch_of(step);
    const double lr = options.optimizer.lr * options.schedule.at(epoch);
    last_ = step + 1 == setup_.steps;
    compute_.step = step;
    if (whole_) {
      WholeGradient whole = whole_at(*whole_, step);
      whole.norm /= setup_.workers();
      synchronizer_->part_of(whole);
    }
    synchronizer_->begin({step, epoch, lr});
    synchronizer_->forward_done(loss_);
    const Tensor gradient = this->gradient();
    input_.read(step, gradient.data<float>());
    for (int64_t i = 0; i < gradient.numel(); ++i)
      gradient.data<float>()[i] /= static_cast<float>(setup_.workers());
    parameters_->ready(0);
    synchronizer_->before_update();
    const auto* values = gradient.data<float>();
    LabStep done{.result = {values, values + gradient.numel()}};
    optimizer_->step(compute_, lr, synchronizer_->updates(), synchronizer_->rules());
    synchronizer_->after_update();
    done.compressed = synchronizer_->compressed_units() > 0;
    done.cost = synchronizer_->cost();
    done.encoded = by_rank(static_cast<double>(done.cost.bytes_encoded));
    done.sent = by_rank(static_cast<double>(done.cost.bytes_sent));
    done.nonfinite = by_rank(static_cast<double>(done.cost.nonfinite.size()));
    done.too_large = by_rank(static_cast<double>(done.cost.too_large.size()));
    for (const SavedState& state : synchronizer_->state()) {
      const std::string name = of_elements(state);
      if (!name.empty() && state.tensor.dtype() == DType::f32)
        done.norms.emplace_back(name, by_rank(norm(state.tensor)));
    }
    return done;
  }

  /// Writes this rank's files, after the last step.
  void write() {
    write_file(setup_.file(concat("payload_", worker_.rank, ".bin")), payloads_);
    for (const SavedState& state : synchronizer_->state()) {
      const std::string unit = "unit/" + layer_.name + "/";
      std::string name = of_elements(state);
      if (name.empty() && state.name.starts_with(unit)) name = state.name.substr(unit.size());
      if (name.empty()) continue;  // a counter of the run
      const bool shared = state.sharing == Sharing::shared;
      if (shared && worker_.rank > 0) continue;
      write_npy(setup_.file(name + (shared ? "" : concat("_", worker_.rank)) + ".npy"),
                state.tensor);
    }
  }

 private:
  /// Gathers `value` of all ranks. Collective.
  std::vector<double> by_rank(double value) {
    std::vector<double> values(static_cast<size_t>(setup_.workers()));
    values[static_cast<size_t>(worker_.rank)] = value;
    const Bytes data{reinterpret_cast<std::byte*>(values.data()),
                     static_cast<int64_t>(values.size() * sizeof(double))};
    synchronizer_->between_steps([&] {
      worker_.communicator.all_reduce({&data, 1}, DType::f64, ReduceOp::sum)->wait();
    });
    return values;
  }
  /// The state's name if it has a value per element of the layer, or of this rank's part; else
  /// empty.
  std::string of_elements(const SavedState& state) const {
    const std::string suffix = "/" + layer_.name;
    const std::optional<TensorPart> part = part_of_name(state.name);
    const std::string& name = part ? part->whole : state.name;
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : "";
  }
  /// The epoch, rounded as in a run.
  double epoch_of(int64_t step) const {
    const int64_t per_epoch = setup_.request.steps_per_epoch;
    if (per_epoch == 0) return 0.0;
    return static_cast<double>(step / per_epoch) +
           static_cast<double>(step % per_epoch) / static_cast<double>(per_epoch);
  }
  Tensor gradient() const { return parameters_->grad().slice(0, layer_.shape); }

  const LabSetup& setup_;
  Worker& worker_;
  NpyReader input_;
  std::optional<NpyReader> whole_;  // gradients that the rows are parts of
  Stream stream_, comm_stream_;
  std::unique_ptr<Backend> backend_, comm_backend_;
  Context compute_, comm_;
  Parameter layer_;
  std::optional<FlatParameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Tensor loss_;
  Trace trace_;
  bool last_ = false;
  std::string payloads_;                           // payloads of the last step
  std::optional<GradientAveraging> synchronizer_;  // last: its thread uses the rest
};

/// A comparison of results with the true mean, and the files that no single rank owns. Belongs to
/// rank 0's thread.
class LabRecord {
 public:
  explicit LabRecord(const LabSetup& setup)
      : setup_(setup), lines_(setup.file("steps.jsonl"), OutputFile::Mode::replace) {
    std::filesystem::remove(setup.file("mean.npy"));
    mean_.emplace(setup.file("mean.npy"), setup.layer.shape);
    for (const std::string& input : setup.request.inputs) inputs_.emplace_back(input);
    summary_.steps = setup.steps;
    summary_.remarks = setup.remarks;
    summary_.numel = setup.layer.shape.numel();
  }

  void add(int64_t number, const LabStep& step) {
    const std::vector<double> truth = true_mean(number);
    double truth_square = 0.0, result_square = 0.0, error_square = 0.0, product = 0.0;
    for (size_t i = 0; i < truth.size(); ++i) {
      const double value = step.result[i];
      truth_square += truth[i] * truth[i];
      result_square += value * value;
      error_square += (value - truth[i]) * (value - truth[i]);
      product += value * truth[i];
    }
    const double error = std::sqrt(error_square / truth_square);
    const double cosine = product / std::sqrt(truth_square * result_square);
    mean_->append(step.result.data());
    nlohmann::ordered_json line = {{"step", number},
                                   {"compressed", step.compressed},
                                   {"bytes_raw", step.cost.bytes_raw},
                                   {"bytes_dense", step.cost.bytes_dense},
                                   {"bytes_encoded", bytes(step.encoded)},
                                   {"bytes_sent", bytes(step.sent)},
                                   {"relative_error", error},
                                   {"cosine", cosine},
                                   {"nonfinite", ranks_of(step.nonfinite)},
                                   {"too_large", ranks_of(step.too_large)}};
    line["norms"] = nlohmann::ordered_json::object();
    for (const auto& [name, values] : step.norms) line["norms"][name] = values;
    lines_.write(line.dump() + "\n");

    const double each = 1.0 / static_cast<double>(setup_.steps * setup_.workers());
    summary_.compressed += step.compressed;
    for (const double value : step.encoded) summary_.bytes_encoded += value * each;
    for (const double value : step.sent) summary_.bytes_sent += value * each;
    dense_ += static_cast<double>(step.cost.bytes_dense) / static_cast<double>(setup_.steps);
    summary_.nonfinite += !ranks_of(step.nonfinite).empty();
    summary_.too_large += !ranks_of(step.too_large).empty();
    error_.add(error);
    cosine_.add(cosine);
  }

  LabSummary summary() const {
    LabSummary summary = summary_;
    summary.reduction_sent = reduction(dense_, summary.bytes_sent);
    summary.relative_error = error_.mean();
    summary.cosine = cosine_.mean();
    summary.cosines = cosine_.count;
    return summary;
  }

 private:
  /// A mean over the steps in which a figure is defined.
  struct Mean {
    double sum = 0.0;
    int64_t count = 0;
    void add(double value) {
      if (!std::isfinite(value)) return;
      sum += value;
      ++count;
    }
    double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0.0; }
  };

  static std::vector<int> ranks_of(const std::vector<double>& flags) {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < flags.size(); ++rank)
      if (flags[rank] > 0.0) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }
  std::vector<double> true_mean(int64_t step) {
    const auto numel = static_cast<size_t>(setup_.layer.shape.numel());
    std::vector<double> mean(numel);
    row_.resize(numel);
    for (NpyReader& input : inputs_) {
      input.read(step, row_.data());
      for (size_t i = 0; i < numel; ++i) mean[i] += static_cast<double>(row_[i]) / setup_.workers();
    }
    return mean;
  }
  static std::vector<int64_t> bytes(const std::vector<double>& values) {
    return {values.begin(), values.end()};
  }

  const LabSetup& setup_;
  OutputFile lines_;
  std::optional<NpyWriter> mean_;
  std::vector<NpyReader> inputs_;
  std::vector<float> row_;
  double dense_ = 0.0;
  Mean error_, cosine_;
  LabSummary summary_;
};

}  // namespace

LabSummary run_lab(Config config, const LabRequest& request) {
  const LabSetup setup = prepare_lab(std::move(config), request);
  std::filesystem::create_directories(request.out);
  MemoryPool pool;
  LabSummary summary;
  const LaunchOptions launch{.threads = setup.options.threads,
                             .timeout_s = setup.options.timeout_s};
  run_workers(setup.workers(), launch, [&](Worker& worker) {
    LabWorker lab(setup, worker, pool);
    std::optional<LabRecord> record;
    if (worker.rank == 0) record.emplace(setup);
    for (int64_t step = 0; step < setup.steps; ++step) {
      const LabStep done = lab.step(step);
      if (record) record->add(step, done);
    }
    lab.write();
    if (record) summary = record->summary();
  });
  return summary;
}

}  // namespace wisp
