// The score of the test set by test unit, counted while the set is evaluated. Belongs to its
// worker's thread.
#pragma once

#include <string>
#include <vector>

#include "apps/run/summary.h"
#include "apps/setup/replica.h"

namespace wisp {

class TestUnits {
 public:
  /// The units are the speakers; none unless each sample of `examples` names its own. Both
  /// arguments outlive this object.
  TestUnits(Replica& replica, const Examples& examples);
  /// Adds a batch that the replica evaluated, in the order of its stream.
  void add(const Step& step, const Batch& batch);
  /// The sums over all workers, in the order of the names. Collective.
  std::vector<TestUnit> total() const;

 private:
  Replica& replica_;
  std::vector<std::string> names_;
  std::vector<size_t> unit_of_;  // by sample
  int64_t metrics_ = 0;
  DeviceWords sums_;  // (units · metrics, 2) f64
};

}  // namespace wisp
