// A communicator that lets a test damage received messages before its caller sees them. For its
// rank's comm thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace wisp {

/// `call` counts the rank's gathers, all-to-alls and exchanges. `in` has the received messages.
using Damage = std::function<void(int call, std::span<const Bytes> in)>;

class DamagingCommunicator final : public Communicator {
 public:
  DamagingCommunicator(Communicator& inner, Damage damage)
      : inner_(inner), damage_(std::move(damage)) {}

  const Roster& roster() const override { return inner_.roster(); }
  std::unique_ptr<Communicator> split(int colour) override { return inner_.split(colour); }
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) override {
    return inner_.all_reduce(data, dtype, op);
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return damaged(inner_.all_gather(out, in), {in.begin(), in.end()});
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) override {
    return damaged(inner_.all_to_all(out, in), {in.begin(), in.end()});
  }
  PendingPtr exchange(std::span<const Exchange> messages) override {
    std::vector<Bytes> in;
    for (const Exchange& message : messages)
      if (message.in.bytes > 0) in.push_back(message.in);
    return damaged(inner_.exchange(messages), std::move(in));
  }
  PendingPtr barrier() override { return inner_.barrier(); }
  int64_t bytes_sent() const override { return inner_.bytes_sent(); }
  void abort(const std::string& cause) override { inner_.abort(cause); }
  std::string hear_failure() override { return inner_.hear_failure(); }
  void on_progress(std::function<void()> notify) override { inner_.on_progress(std::move(notify)); }

 private:
  struct Damaged final : Pending {
    bool ready() override { return inner->ready(); }
    double ready_at_us() override { return inner->ready_at_us(); }
    Transfer wait() override {
      const Transfer transfer = inner->wait();
      (*damage)(call, in);
      return transfer;
    }
    PendingPtr inner;
    const Damage* damage = nullptr;
    int call = 0;
    std::vector<Bytes> in;
  };

  PendingPtr damaged(PendingPtr inner, std::vector<Bytes> in) {
    auto pending = std::make_unique<Damaged>();
    pending->inner = std::move(inner);
    pending->damage = &damage_;
    pending->call = calls_++;
    pending->in = std::move(in);
    return pending;
  }

  Communicator& inner_;
  Damage damage_;
  int calls_ = 0;
};

}  // namespace wisp
