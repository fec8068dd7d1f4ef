// A configuration that is ready to run: its keys bound and checked, its data opened. Any thread may
// read it after load().
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "apps/setup/exchange_plan.h"
#include "apps/setup/replica.h"
#include "apps/setup/resident_splits.h"
#include "apps/setup/train_options.h"
#include "data/data_source.h"
#include "data/loader.h"
#include "models/model.h"

namespace wisp {

class Prepared {
 public:
  /// Binds every key, with a model that has no memory, so that a wrong configuration fails before
  /// anything is read or written. Throws Error with file:line.
  explicit Prepared(Config config);

  /// Opens all splits. Throws Error for data that is missing, damaged, or too little for one step
  /// of all workers.
  void load();

  const TrainOptions& options() const { return options_; }
  const Config& config() const { return config_; }
  /// The model's inputs and classes: the data's facts, with model.classes.
  const Facts& facts() const { return facts_; }
  const std::vector<Metric>& metrics() const { return metrics_; }
  bool has_validation() const { return source_->has_validation(); }
  /// Notes for the user on the configuration: keys without effect, another number of workers.
  const std::vector<std::string>& notices() const { return notices_; }
  /// The forecast of the run's exchange.
  const ExchangePlan& exchange() const { return exchange_; }
  const DataSource& source() const { return *source_; }
  /// The examples of a split; null before load(), and without such a split.
  const Examples* examples(Split split) const { return splits_.of(split); }
  /// Notes for the user on files that load() passed over.
  const std::vector<std::string>& passed_over() const { return splits_.notices; }
  /// A worker's loader of a split, null without such a split. A device that holds the split makes
  /// the batches itself. Any thread. Throws Error as ResidentSplits.
  std::unique_ptr<Loader> loader(Split split, int rank) const;

 private:
  Config config_;
  TrainOptions options_;
  std::unique_ptr<DataSource> source_;
  Facts facts_;
  std::vector<Metric> metrics_;
  std::vector<std::string> notices_;
  ExchangePlan exchange_;
  Splits splits_;
  std::vector<std::unique_ptr<ResidentSplits>> resident_;  // one per device
};

/// Calls `work` with a fresh replica in each worker that the configuration asks for. Workers of one
/// device share a memory pool. `link`: emulated, for training. Rethrows the first worker's
/// exception as "rank R: …". One thread calls it.
void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work,
                  const LinkSpec& link = {});

}  // namespace wisp
