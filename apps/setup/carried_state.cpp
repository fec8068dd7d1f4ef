#include "apps/setup/carried_state.h"

#include <utility>

#include "core/base/error.h"
#include "core/copy.h"

namespace wisp {

CarriedState::CarriedState(Context& context, const Model& model, const Deal& deal)
    : context_(context),
      columns_(deal.batch / deal.pieces()),
      workers_(deal.workers),
      rank_(deal.rank),
      after_(static_cast<size_t>(deal.accumulate)) {
  for (const Shape& column : model.carried())
    whole_.push_back(context.zeros(column.stacked(deal.batch), context.compute));
}

Tensor CarriedState::columns(const Tensor& tensor, int64_t micro) const {
  const int64_t first = (micro * workers_ + rank_) * columns_;
  return tensor.rows(first, first + columns_);
}

Carry CarriedState::before(const Batch& batch, int64_t micro) const {
  Carry before;
  for (const Tensor& tensor : whole_) {
    before.push_back(columns(tensor, micro));
    if (batch.begins) clear(context_.stream, before.back());
  }
  return before;
}

void CarriedState::after(int64_t micro, Carry carry) {
  WISP_CHECK(carry.size() == whole_.size(), "the model left a state of ", carry.size(),
             " tensors, but Model::carried() declares ", whole_.size());
  for (size_t i = 0; i < carry.size(); ++i) {
    const Shape expected = whole_[i].shape().with_rows(columns_);
    WISP_CHECK(carry[i].shape() == expected && carry[i].dtype() == whole_[i].dtype(),
               "the model left a state tensor of ", carry[i].shape(), " ",
               name_of(carry[i].dtype()), ", expected ", expected, " ", name_of(whole_[i].dtype()),
               " by Model::carried()");
  }
  after_[static_cast<size_t>(micro)] = std::move(carry);
}

void CarriedState::commit() {
  for (size_t micro = 0; micro < after_.size(); ++micro) {
    for (size_t i = 0; i < after_[micro].size(); ++i)
      copy(context_.stream, after_[micro][i], columns(whole_[i], static_cast<int64_t>(micro)));
  }
  drop();
}

void CarriedState::keep_own() const {
  for (const Tensor& tensor : whole_) {
    for (int64_t piece = 0; piece < workers_ * std::ssize(after_); ++piece) {
      if (piece % workers_ == rank_) continue;
      clear(context_.stream, tensor.rows(piece * columns_, (piece + 1) * columns_));
    }
  }
}

}  // namespace wisp
