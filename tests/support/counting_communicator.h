// A communicator that counts the collectives it was asked for; readable from any thread.
#pragma once

#include <atomic>

#include "distributed/communicator/communicator.h"

namespace wisp {

class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(Communicator& inner) : inner_(inner) {}

  int64_t collectives() const { return collectives_; }

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override {
    ++collectives_;
    return inner_.all_reduce(data, dtype, op);
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    ++collectives_;
    return inner_.all_gather(out, in);
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    ++collectives_;
    return inner_.all_to_all(out, in);
  }
  PendingPtr broadcast(std::span<const Bytes> data, int root) override {
    ++collectives_;
    return inner_.broadcast(data, root);
  }
  PendingPtr exchange(std::span<const Exchange> messages) override {
    ++collectives_;
    return inner_.exchange(messages);
  }
  PendingPtr barrier() override {
    ++collectives_;
    return inner_.barrier();
  }
  void abort(const std::string& cause) override { inner_.abort(cause); }
  std::string hear_failure() override { return inner_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { inner_.on_progress(std::move(notify)); }

 private:
  Communicator& inner_;
  std::atomic<int64_t> collectives_{0};
};

}  // namespace wisp
