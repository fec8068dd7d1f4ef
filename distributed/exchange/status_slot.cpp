#include "distributed/exchange/status_slot.h"

#include <cmath>

#include "core/base/error.h"
#include "core/copy.h"

namespace wisp {
namespace {

enum Word { kNonFinite, kStop, kHash, kNotHash, kWords };

double value_of(const Tensor& scalar) {
  return dispatch_float(scalar.dtype(), "loss", [&](auto zero) {
    return static_cast<double>(*scalar.data<decltype(zero)>());
  });
}

}  // namespace

StatusSlot::StatusSlot(Communicator& communicator, Context& context)
    : communicator_(communicator), context_(context), words_({kWords}, DType::u32) {}

void StatusSlot::fetch(const Tensor& loss) {
  if (loss.device().is_cuda()) {
    if (!loss_.defined()) loss_ = host_tensor(loss.shape(), loss.dtype(), loss.device());
    copy(context_.stream, loss, loss_);
  } else {
    loss_ = loss;
  }
}

PendingPtr StatusSlot::start(bool stop, uint64_t hash) {
  hash_ = static_cast<uint32_t>(hash);
  auto* words = words_.data<uint32_t>();
  words[kNonFinite] = !std::isfinite(value_of(loss_));
  words[kStop] = stop;
  words[kHash] = hash_;
  words[kNotHash] = ~hash_;
  const Bytes data{words_.raw(), words_.bytes()};
  return communicator_.all_reduce({&data, 1}, DType::u32, ReduceOp::max);
}

Outcome StatusSlot::outcome(int64_t step) const {
  const auto* words = words_.data<uint32_t>();
  WISP_CHECK(words[kHash] == hash_ && words[kNotHash] == ~hash_, "step ", step,
             ": the ranks' plans of what to exchange differ; they must run the same configuration "
             "and program");
  if (words[kNonFinite]) return Outcome::skipped;
  return words[kStop] ? Outcome::stop : Outcome::applied;
}

}  // namespace wisp
