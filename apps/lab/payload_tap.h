// A compressor that keeps a copy of another one's payloads. Belongs to its worker's comm thread.
#pragma once

#include "compression/forwarding_compressor.h"

namespace wisp {

class PayloadTap final : public ForwardingCompressor {
 public:
  /// Appends every payload of `inner` to `kept` while `*open`: u32 round, u32 outlet (the
  /// destination of an all_to_all, else 0), u64 bytes, little-endian, then the bytes.
  PayloadTap(std::unique_ptr<Compressor> inner, const bool* open, std::string* kept)
      : ForwardingCompressor(std::move(inner)), open_(open), kept_(kept) {}

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    ForwardingCompressor::encode(context, unit, info, round, outlets);
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

 private:
  template <class T>
  void add(T word) {
    kept_->append(reinterpret_cast<const char*>(&word), sizeof word);
  }

  const bool* open_;
  std::string* kept_;
};

}  // namespace wisp
