// What a model carries from batch to batch, for all columns of a run; each worker moves its own.
#pragma once

#include <vector>

#include "core/io/saved_state.h"
#include "data/examples.h"
#include "models/model.h"

namespace wisp {

class CarriedState {
 public:
  /// The context outlives this object.
  CarriedState(Context& context, const Model& model, const Deal& deal);

  /// What micro-batch `micro` starts from: the columns of its piece, zero if the batch begins. They
  /// stay as they are until commit().
  Carry before(const Batch& batch, int64_t micro) const;
  /// What it left. Throws Error unless that has the shapes that Model::carried() told.
  void after(int64_t micro, Carry carry);
  /// What was left becomes what the next step starts from; or a skipped step leaves nothing.
  void commit();
  void drop() { after_.assign(after_.size(), {}); }

  /// The state of the other workers' columns becomes zero, so that a sum over workers is the whole.
  void keep_own() const;
  /// (columns of all workers, …) each.
  const Carry& whole() const { return whole_; }

 private:
  Tensor columns(const Tensor& tensor, int64_t micro) const;

  Context& context_;
  const int64_t columns_;  // of a piece
  const int64_t workers_, rank_;
  Carry whole_;
  std::vector<Carry> after_;  // by micro-batch
};

}  // namespace wisp
