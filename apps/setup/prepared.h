// A configuration made ready to run: every key bound and checked, and the data loaded.
#pragma once

#include <memory>
#include <optional>

#include "apps/setup/exchange_plan.h"
#include "apps/setup/train_options.h"
#include "data/loader.h"
#include "models/model.h"

namespace wisp {

class Prepared {
 public:
  /// Binds every key, on a model without memory, so that a wrong configuration fails before
  /// anything is read or written. Throws Error with file:line.
  explicit Prepared(Config config);

  /// Reads or draws both splits and holds out what data.validation asks for. Throws Error for data
  /// that is missing or damaged, or too little for a step of all workers.
  void load();

  const TrainOptions& options() const { return options_; }
  const Config& config() const { return config_; }
  const ModelSetup& ends() const { return ends_; }
  /// What the run is going to exchange.
  const ExchangePlan& exchange() const { return exchange_; }
  const Dataset& train_set() const { return train_set_; }
  /// What was held out of the training set; nothing if data.validation is 0.
  const std::optional<Dataset>& validation_set() const { return validation_set_; }
  const Dataset& test_set() const { return test_set_; }
  LoaderOptions train_loader(int rank) const;
  /// Of the test set and of the validation split.
  LoaderOptions test_loader(int rank) const;

 private:
  void hold_out_validation();

  Config config_;
  TrainOptions options_;
  std::unique_ptr<DataSource> source_;
  ModelSetup ends_;
  ExchangePlan exchange_;
  Dataset train_set_;
  std::optional<Dataset> validation_set_;
  Dataset test_set_;
};

}  // namespace wisp
