// A data set before it is read: bound options, facts for a model, and the splits. One thread.
#pragma once

#include <memory>

#include "core/base/registry.h"
#include "core/facts.h"
#include "core/io/config.h"
#include "data/examples.h"

namespace wisp {

class DataSource {
 public:
  virtual ~DataSource() = default;
  /// The inputs and classes. May read data, such as a vocabulary. Throws Error like open().
  virtual Facts facts() const = 0;
  /// Reads, draws or lists all splits. `compute` is the type of activations. Throws Error for data
  /// that is missing or damaged.
  virtual Splits open(DType compute) const = 0;
  /// Number of training samples that data.validation holds out for validation; 0: none.
  virtual int64_t held_out() const { return 0; }
  virtual bool has_validation() const { return held_out() > 0; }
};

/// The data sets by name. A factory binds its keys "data.…".
using DataRegistry = Registry<DataSource, Config&>;
using DataRegistration = Registration<DataSource, Config&>;

/// The factory of a class with a constructor of that argument.
template <class Source>
std::unique_ptr<DataSource> make_source(Config& config) {
  return std::make_unique<Source>(config);
}

/// The data set named by key data.name. Throws Error with the known names if there is none.
inline std::unique_ptr<DataSource> make_data_source(Config& config) {
  std::string name = "cifar10";
  config.bind("data.name", name, "data set; `wisp config --reference` has a section for each");
  config.offer("data.name", DataRegistry::instance().names());
  return DataRegistry::instance().find("data set (data.name)", name).make(config);
}

}  // namespace wisp
