// A communicator that counts its collectives, and the waits for collectives that were not ready.
// Any thread may read the counts.
#pragma once

#include <atomic>
#include <utility>

#include "distributed/communicator/communicator.h"

namespace wisp {

class CountingCommunicator final : public Communicator {
 public:
  explicit CountingCommunicator(Communicator& inner) : inner_(inner) {}

  int64_t collectives() const { return collectives_; }
  int64_t blocking_waits() const { return blocking_waits_; }

  const Roster& roster() const override { return inner_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override { return inner_.split(colour); }
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override {
    return counted(inner_.all_reduce(data, dtype, op));
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return counted(inner_.all_gather(out, in));
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return counted(inner_.all_to_all(out, in));
  }
  PendingPtr exchange(std::span<const Exchange> messages) override {
    return counted(inner_.exchange(messages));
  }
  PendingPtr barrier() override { return counted(inner_.barrier()); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  void abort(const std::string& cause) override { inner_.abort(cause); }
  std::string hear_failure() override { return inner_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { inner_.on_progress(std::move(notify)); }

 private:
  class Counted final : public Pending {
   public:
    Counted(CountingCommunicator& owner, PendingPtr inner)
        : owner_(owner), inner_(std::move(inner)) {}
    bool ready() override { return ready_ = inner_->ready(); }
    double ready_at_us() override { return inner_->ready_at_us(); }
    Transfer wait() override {
      if (!ready_) ++owner_.blocking_waits_;
      return inner_->wait();
    }

   private:
    CountingCommunicator& owner_;
    PendingPtr inner_;
    bool ready_ = false;  // result of the last ready()
  };

  PendingPtr counted(PendingPtr inner) {
    ++collectives_;
    return std::make_unique<Counted>(*this, std::move(inner));
  }

  Communicator& inner_;
  std::atomic<int64_t> collectives_{0}, blocking_waits_{0};
};

}  // namespace wisp
