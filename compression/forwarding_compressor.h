// A compressor that forwards every call to another one. Derive from it to observe or change a part.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "compression/compressor.h"

namespace wisp {

class ForwardingCompressor : public Compressor {
 public:
  explicit ForwardingCompressor(std::unique_ptr<Compressor> inner) : inner_(std::move(inner)) {}

  Traits traits() const override { return inner_->traits(); }
  std::string refusal(const Field& field) const override { return inner_->refusal(field); }
  bool started(const StepInfo& info) const override { return inner_->started(info); }
  std::vector<StateSpec> state(const UnitSpec& spec, int workers) const override {
    return inner_->state(spec, workers);
  }
  std::vector<Slice> owned(const UnitSpec& spec, int rank, int ranks) const override {
    return inner_->owned(spec, rank, ranks);
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->scratch_bytes(spec, info);
  }
  int rounds(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->rounds(spec, info);
  }
  int64_t period() const override { return inner_->period(); }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return inner_->message(spec, info, round);
  }
  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    inner_->encode(context, unit, info, round, outlets);
  }
  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    inner_->decode(context, unit, info, round, payloads);
  }
  std::string remark(const UnitSpec& spec) const override { return inner_->remark(spec); }
  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    inner_->engage(context, unit, info);
  }
  void release(Context& context, Unit& unit, const StepInfo& info) override {
    inner_->release(context, unit, info);
  }

 private:
  std::unique_ptr<Compressor> inner_;
};

}  // namespace wisp
