// A configuration made ready to run: every key bound and checked, and the data opened.
#pragma once

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
  /// Binds every key, on a model without memory, so that a wrong configuration fails before
  /// anything is read or written. Throws Error with file:line.
  explicit Prepared(Config config);

  /// Opens all splits. Throws Error for data that is missing or damaged, or too little for a step
  /// of all workers.
  void load();

  const TrainOptions& options() const { return options_; }
  const Config& config() const { return config_; }
  /// Of the model's ends: the data's, with model.classes.
  const Facts& facts() const { return facts_; }
  const std::vector<Metric>& metrics() const { return metrics_; }
  bool has_validation() const { return source_->has_validation(); }
  /// What a person should know of the configuration: keys that have no effect, other workers.
  const std::vector<std::string>& notices() const { return notices_; }
  /// What the run is going to exchange.
  const ExchangePlan& exchange() const { return exchange_; }
  /// What all workers of a process share; `pool` is of the worker's device.
  Shared shared(MemoryPool& pool) const {
    return {options_, config_, pool, facts_, source_->held_out()};
  }
  const DataSource& source() const { return *source_; }
  /// Null if there is no such split, as before load().
  const Examples* examples(Split split) const { return splits_.of(split); }
  /// What load() passed over, for people.
  const std::vector<std::string>& passed_over() const { return splits_.notices; }
  /// A worker's batches of a split, which its device makes of data that it holds, if it does;
  /// null if there is no such split. Any thread. Throws Error as ResidentSplits.
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
  std::vector<std::unique_ptr<ResidentSplits>> resident_;  // of each device
};

}  // namespace wisp
