// The state that a model carries from batch to batch, for all columns of a run; each worker updates
// its own columns. Belongs to its worker's thread.
#pragma once

#include <vector>

#include "data/examples.h"
#include "models/model.h"

namespace wisp {

class CarriedState {
 public:
  /// The context outlives this object.
  CarriedState(Context& context, const Model& model, const Deal& deal);

  /// The state that micro-batch `micro` starts from: the columns of its piece, zero at the
  /// beginning of a text. They do not change before commit().
  Carry before(const Batch& batch, int64_t micro) const;
  /// Stores the state after micro-batch `micro`. Throws Error unless it has the shapes of
  /// Model::carried().
  void after(int64_t micro, Carry carry);
  /// Makes the stored states the start of the next step; drop() discards them, after a skipped
  /// step.
  void commit();
  void drop() { after_.assign(after_.size(), {}); }

  /// Zeroes the columns of other workers, so that a sum over workers gives the whole state.
  void keep_own() const;
  /// The state of all workers' columns, (columns, …) each.
  const Carry& whole() const { return whole_; }

 private:
  Tensor columns(const Tensor& tensor, int64_t micro) const;

  Context& context_;
  const int64_t columns_;  // columns of one piece
  const int64_t workers_, rank_;
  Carry whole_;
  std::vector<Carry> after_;  // by micro-batch
};

}  // namespace wisp
