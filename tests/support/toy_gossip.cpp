#include "tests/support/toy_gossip.h"

#include <cstring>

namespace wisp {

ToyGossip::ToyGossip(Communicator& communicator, Context& context, FlatParameters& parameters)
    : communicator_(communicator),
      parameters_(parameters),
      rules_(parameters.segments().size(), UpdateRule::gradient),
      theirs_(context.empty(parameters.weight().shape(), DType::f32)),
      mean_(context.empty(parameters.weight().shape(), DType::f32)) {}

int ToyGossip::neighbour(int64_t step, int rank, int workers) {
  const int peer = (step + rank) % 2 == 0 ? rank + 1 : rank - 1;
  return peer < workers ? peer : -1;
}

void ToyGossip::begin(const StepBegin& info) {
  step_ = info.step;
  apply_exchange();
}

Outcome ToyGossip::before_update() {
  uint32_t stop = stop_requested_;
  const Bytes data{reinterpret_cast<std::byte*>(&stop), sizeof stop};
  between_steps([&] { communicator_.all_reduce({&data, 1}, DType::u32, ReduceOp::max)->wait(); });
  return stop ? Outcome::stop : Outcome::applied;
}

void ToyGossip::after_update() {
  peer_ = neighbour(step_, communicator_.rank(), communicator_.size());
  queue_.post([this] {
    const Tensor& mine = parameters_.weight();
    std::vector<Exchange> messages;
    if (peer_ >= 0)
      messages.push_back({peer_, {mine.raw(), mine.bytes()}, {theirs_.raw(), theirs_.bytes()}});
    communicator_.exchange(messages)->wait();
  });
}

void ToyGossip::apply_exchange() {
  queue_.drain();
  if (peer_ < 0) return;
  peer_ = -1;
  float* mine = parameters_.weight().data<float>();
  for (int64_t i = 0; i < parameters_.numel(); ++i)
    mine[i] = 0.5f * (mine[i] + theirs_.data<float>()[i]);
}

Tensor ToyGossip::consensus() {
  apply_exchange();
  std::memcpy(mean_.raw(), parameters_.weight().raw(), static_cast<size_t>(mean_.bytes()));
  between_steps([this] {
    const Bytes data{mean_.raw(), mean_.bytes()};
    communicator_.all_reduce({&data, 1}, DType::f32, ReduceOp::sum)->wait();
  });
  for (int64_t i = 0; i < mean_.numel(); ++i)
    mean_.data<float>()[i] /= static_cast<float>(communicator_.size());
  return mean_;
}

void ToyGossip::between_steps(const std::function<void()>& task) {
  queue_.post(task);
  queue_.drain();
}

}  // namespace wisp
