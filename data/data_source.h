// Where data comes from: its options are bound, nothing is read yet.
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
  /// May read what they follow from, as a vocabulary. Throws Error as open().
  virtual Facts facts() const = 0;
  /// Reads, draws or lists all splits; activations will be of type `compute`. Throws Error for data
  /// that is missing or damaged.
  virtual Splits open(DType compute) const = 0;
  /// Training samples that are the validation split, by data.validation; 0: it is none of them.
  virtual int64_t held_out() const { return 0; }
  virtual bool has_validation() const { return held_out() > 0; }
};

/// Data sets by name. A factory binds their keys "data.…".
using DataRegistry = Registry<DataSource, Config&>;
using DataRegistration = Registration<DataSource, Config&>;

/// The data set that key data.name tells. Throws Error with the known names if there is none.
std::unique_ptr<DataSource> make_data_source(Config& config);

}  // namespace wisp
