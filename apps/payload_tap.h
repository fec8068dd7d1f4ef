// A compressor that keeps what another one encodes. One thread, the worker's comm thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "compression/compressor.h"

namespace wisp {

class PayloadTap final : public Compressor {
 public:
  /// Adds to `kept`, while `*open`, every payload that `inner` encodes: u32 round, u32 outlet (the
  /// destination of an all_to_all, else 0), u64 bytes, little-endian, and the bytes.
  PayloadTap(std::unique_ptr<Compressor> inner, const bool* open, std::string* kept)
      : inner_(std::move(inner)), open_(open), kept_(kept) {}

  Traits traits() const override { return inner_->traits(); }
  bool started(const StepInfo& info) const override { return inner_->started(info); }
  std::vector<StateSpec> state(const UnitSpec& spec, int workers) const override {
    return inner_->state(spec, workers);
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->scratch_bytes(spec, info);
  }
  int rounds(const UnitSpec& spec, const StepInfo& info) const override {
    return inner_->rounds(spec, info);
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return inner_->message(spec, info, round);
  }
  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    inner_->encode(context, unit, info, round, outlets);
    if (!*open_) return;
    context.stream.synchronize();
    for (size_t i = 0; i < outlets.size(); ++i) {
      const int64_t bytes = outlets[i].used ? *outlets[i].used : outlets[i].capacity;
      add(static_cast<uint32_t>(round));
      add(static_cast<uint32_t>(i));
      add(static_cast<uint64_t>(bytes));
      kept_->append(reinterpret_cast<const char*>(outlets[i].data), static_cast<size_t>(bytes));
    }
  }
  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    inner_->decode(context, unit, info, round, payloads);
  }
  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    inner_->engage(context, unit, info);
  }

 private:
  template <class T>
  void add(T word) {
    kept_->append(reinterpret_cast<const char*>(&word), sizeof word);
  }

  std::unique_ptr<Compressor> inner_;
  const bool* open_;
  std::string* kept_;
};

}  // namespace wisp
