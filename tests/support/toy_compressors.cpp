#include "tests/support/toy_compressors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "compression/forwarding_compressor.h"

namespace wisp {
namespace {

constexpr int64_t kFloat = sizeof(float);

/// Calls f(position in the unit, element of the arena) for all fields.
template <class F>
void each_element(const UnitSpec& spec, const F& f) {
  int64_t position = 0;
  for (const Field& field : spec.fields) {
    for (const Slice& slice : field.slices) {
      for (int64_t i = 0; i < slice.numel; ++i) f(position++, slice.offset + i);
    }
  }
}

float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }
const float* floats(const std::byte* data) { return reinterpret_cast<const float*>(data); }

/// Copies the unit's values in the order of positions, or zeros if they do not count.
void copy_out(const Unit& unit, std::byte* into) {
  const float* gradient = unit.gradient.data<float>();
  each_element(unit.spec,
               [&](int64_t at, int64_t i) { floats(into)[at] = unit.finite ? gradient[i] : 0.0f; });
}

void copy_in(const Unit& unit, const float* from) {
  float* gradient = unit.gradient.data<float>();
  each_element(unit.spec, [&](int64_t at, int64_t i) { gradient[i] = from[at]; });
}

void add_in(const Unit& unit, const float* from) {
  float* gradient = unit.gradient.data<float>();
  each_element(unit.spec, [&](int64_t at, int64_t i) { gradient[i] += from[at]; });
}

void clear(const Unit& unit) {
  float* gradient = unit.gradient.data<float>();
  each_element(unit.spec, [&](int64_t, int64_t i) { gradient[i] = 0.0f; });
}

Message sum_of(int64_t numel) {
  return {.kind = Collective::all_reduce, .dtype = DType::f32, .bytes = numel * kFloat};
}

/// A compressor without state and scratch, whose work is one task on the stream.
class Toy : public Compressor {
 public:
  Traits traits() const override { return {.dense_1d = false}; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override { return {}; }
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 1; }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) final {
    context.stream.submit(
        [this, &unit, &info, round, outlets] { encode_now(unit, info, round, outlets); });
  }
  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) final {
    context.stream.submit(
        [this, &unit, &info, round, payloads] { decode_now(unit, info, round, payloads); });
  }

 protected:
  virtual void encode_now(Unit&, const StepInfo&, int round, std::span<const Outlet>) = 0;
  virtual void decode_now(Unit&, const StepInfo&, int round, std::span<const Payload>) = 0;
};

class ScaledSum final : public Toy {
 public:
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return static_cast<int64_t>(spec.fields.size()) * kFloat;
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo&, int round) const override {
    if (round == 1) return sum_of(spec.numel);
    Message message = sum_of(static_cast<int64_t>(spec.fields.size()));
    message.op = ReduceOp::max;
    return message;
  }

 protected:
  void encode_now(Unit& unit, const StepInfo&, int round,
                  std::span<const Outlet> outlets) override {
    float* out = floats(outlets[0].data);
    const float* gradient = unit.gradient.data<float>();
    const float* scales = floats(unit.scratch);
    for (size_t f = 0; f < unit.spec.fields.size(); ++f) {
      const Field& field = unit.spec.fields[f];
      float largest = 0.0f;
      each_element({{&field, 1}, field.numel}, [&](int64_t at, int64_t i) {
        const float value = unit.finite ? gradient[i] : 0.0f;
        largest = std::max(largest, std::abs(value));
        if (round == 1) out[at] = value / scales[f];
      });
      if (round == 0) out[f] = largest;
      if (round == 1) out += field.numel;
    }
  }
  void decode_now(Unit& unit, const StepInfo&, int round,
                  std::span<const Payload> payloads) override {
    const float* in = floats(payloads[0].data);
    float* scales = floats(unit.scratch);
    for (size_t f = 0; f < unit.spec.fields.size(); ++f) {
      const Field& field = unit.spec.fields[f];
      if (round == 0) {
        scales[f] = std::exp2(std::ceil(std::log2(std::max(in[f], 1.0f))));
        continue;
      }
      float* gradient = unit.gradient.data<float>();
      each_element({{&field, 1}, field.numel},
                   [&](int64_t at, int64_t i) { gradient[i] = in[at] * scales[f]; });
      in += field.numel;
    }
  }
};

class NonZeros final : public Toy {
 public:
  Message message(const UnitSpec& spec, const StepInfo&, int) const override {
    return {.kind = Collective::all_gather, .bytes = spec.numel * 2 * kFloat, .variable = true};
  }

 protected:
  struct Entry {
    int32_t position;
    float value;
  };
  void encode_now(Unit& unit, const StepInfo&, int, std::span<const Outlet> outlets) override {
    auto* entries = reinterpret_cast<Entry*>(outlets[0].data);
    int64_t count = 0;
    const float* gradient = unit.gradient.data<float>();
    each_element(unit.spec, [&](int64_t at, int64_t i) {
      if (unit.finite && gradient[i] != 0.0f)
        entries[count++] = {static_cast<int32_t>(at), gradient[i]};
    });
    *outlets[0].used = count * static_cast<int64_t>(sizeof(Entry));
  }
  void decode_now(Unit& unit, const StepInfo&, int, std::span<const Payload> payloads) override {
    std::vector<float> sum(static_cast<size_t>(unit.spec.numel));
    for (const Payload& payload : payloads) {
      const auto* entries = reinterpret_cast<const Entry*>(payload.data);
      for (size_t e = 0; e < static_cast<size_t>(payload.bytes) / sizeof(Entry); ++e)
        sum[static_cast<size_t>(entries[e].position)] += entries[e].value;
    }
    copy_in(unit, sum.data());
  }
};

class Owners final : public Toy {
 public:
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return spec.numel * kFloat;
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    const int64_t largest = (spec.numel + info.ranks - 1) / info.ranks * kFloat;
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = largest,
            .variable = true};
  }

 protected:
  static int64_t begin_of(int64_t numel, int rank, int workers) { return numel * rank / workers; }

  void encode_now(Unit& unit, const StepInfo& info, int round,
                  std::span<const Outlet> outlets) override {
    const int64_t n = unit.spec.numel;
    if (round == 0) copy_out(unit, unit.scratch);
    for (size_t o = 0; o < outlets.size(); ++o) {
      const int owner = round == 0 ? static_cast<int>(o) : info.rank;
      const int64_t begin = begin_of(n, owner, info.ranks);
      *outlets[o].used = (begin_of(n, owner + 1, info.ranks) - begin) * kFloat;
      std::memcpy(outlets[o].data, floats(unit.scratch) + begin,
                  static_cast<size_t>(*outlets[o].used));
    }
  }
  void decode_now(Unit& unit, const StepInfo& info, int round,
                  std::span<const Payload> payloads) override {
    float* all = floats(unit.scratch);
    const int64_t own = begin_of(unit.spec.numel, info.rank, info.ranks);
    if (round == 0) {
      const int64_t end = begin_of(unit.spec.numel, info.rank + 1, info.ranks);
      std::fill(all + own, all + end, 0.0f);
    }
    for (const Payload& payload : payloads) {
      const int64_t begin = round == 0 ? own : begin_of(unit.spec.numel, payload.from, info.ranks);
      for (int64_t i = 0; i < payload.bytes / kFloat; ++i) {
        const float value = floats(payload.data)[i];
        all[begin + i] = round == 0 ? all[begin + i] + value : value;
      }
    }
    if (round == 1) copy_in(unit, all);
  }
};

class Tree final : public Toy {
 public:
  explicit Tree(bool variable) : variable_(variable) {}

  int rounds(const UnitSpec&, const StepInfo& info) const override {
    return std::max(1, 2 * height(info));
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    Message message{.kind = Collective::pair, .bytes = spec.numel * kFloat, .variable = variable_};
    if (info.ranks == 1) return message;
    const bool up = round < height(info);
    const int reach = 1 << (up ? round : 2 * height(info) - 1 - round);
    const bool upper = info.rank % (2 * reach) == 0 && info.rank + reach < info.ranks;
    const bool lower = info.rank % (2 * reach) == reach;
    if (upper) (up ? message.from : message.to) = info.rank + reach;
    if (lower) (up ? message.to : message.from) = info.rank - reach;
    return message;
  }

 protected:
  void encode_now(Unit& unit, const StepInfo&, int round,
                  std::span<const Outlet> outlets) override {
    if (round == 0 && !unit.finite) clear(unit);
    if (outlets.empty()) return;
    const float* gradient = unit.gradient.data<float>();
    int64_t used = 0;
    each_element(unit.spec, [&](int64_t at, int64_t i) {
      floats(outlets[0].data)[at] = gradient[i];
      if (gradient[i] != 0.0f) used = at + 1;
    });
    if (variable_) *outlets[0].used = used * kFloat;
  }
  void decode_now(Unit& unit, const StepInfo& info, int round,
                  std::span<const Payload> payloads) override {
    const bool down = round >= height(info);
    for (const Payload& payload : payloads) {
      std::vector<float> values(static_cast<size_t>(unit.spec.numel));
      std::memcpy(values.data(), payload.data, static_cast<size_t>(payload.bytes));
      down ? copy_in(unit, values.data()) : add_in(unit, values.data());
    }
  }

 private:
  /// Rounds from the leaves to rank 0.
  static int height(const StepInfo& info) {
    return std::bit_width(static_cast<unsigned>(info.ranks - 1));
  }

  bool variable_;
};

class SilentRound final : public Toy {
 public:
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo&) const override {
    return spec.numel * kFloat;
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo&, int round) const override {
    return round == 0 ? Message{} : sum_of(spec.numel);
  }

 protected:
  void encode_now(Unit& unit, const StepInfo&, int round,
                  std::span<const Outlet> outlets) override {
    WISP_CHECK(outlets.size() == static_cast<size_t>(round), "toy: ", outlets.size(),
               " outlets in round ", round);
    if (round == 0) return copy_out(unit, unit.scratch);
    std::memcpy(outlets[0].data, unit.scratch, static_cast<size_t>(outlets[0].capacity));
  }
  void decode_now(Unit& unit, const StepInfo&, int round,
                  std::span<const Payload> payloads) override {
    WISP_CHECK(payloads.size() == static_cast<size_t>(round), "toy: ", payloads.size(),
               " payloads in round ", round);
    if (round == 1) copy_in(unit, floats(payloads[0].data));
  }
};

class Parity final : public Toy {
 public:
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "toy_residual"},
            {.name = "toy_updates",
             .per_element = false,
             .dtype = DType::i64,
             .shape = {1},
             .sharing = Sharing::shared,
             .check = check_counts}};
  }
  Message message(const UnitSpec& spec, const StepInfo&, int) const override {
    return sum_of(spec.numel);
  }

 protected:
  void encode_now(Unit& unit, const StepInfo& info, int, std::span<const Outlet> outlets) override {
    const int64_t updates = *unit.state->tensors[1].data<int64_t>();
    WISP_CHECK(updates == info.applied, "toy: counted ", updates, " updates of ", info.applied);
    float* out = floats(outlets[0].data);
    float* residual = unit.state->tensors[0].data<float>();
    const float* gradient = unit.gradient.data<float>();
    each_element(unit.spec, [&](int64_t at, int64_t i) {
      out[at] = 0.0f;
      if (!unit.finite) return;
      const float value = residual[i] + gradient[i];
      const bool send = info.applied % 2 == 1 || at % 2 == 0;
      out[at] = send ? value : 0.0f;
      residual[i] = send ? 0.0f : value;
    });
  }
  void decode_now(Unit& unit, const StepInfo&, int, std::span<const Payload> payloads) override {
    copy_in(unit, floats(payloads[0].data));
    ++*unit.state->tensors[1].data<int64_t>();
  }
};

class Guarded final : public Toy {
 public:
  Guarded(int64_t cheap_from, std::atomic<int>* engaged)
      : cheap_from_(cheap_from), engaged_(engaged) {}

  Message message(const UnitSpec& spec, const StepInfo& info, int) const override {
    Message message = sum_of(spec.numel);
    if (info.step < cheap_from_) message.kind = Collective::all_gather;
    return message;
  }
  void engage(Context&, Unit&, const StepInfo&) override { ++*engaged_; }

 protected:
  void encode_now(Unit& unit, const StepInfo&, int, std::span<const Outlet> outlets) override {
    copy_out(unit, outlets[0].data);
  }
  void decode_now(Unit& unit, const StepInfo&, int, std::span<const Payload> payloads) override {
    clear(unit);
    for (const Payload& payload : payloads) add_in(unit, floats(payload.data));
  }

 private:
  int64_t cheap_from_;
  std::atomic<int>* engaged_;
};

class Hooked final : public ForwardingCompressor {
 public:
  Hooked(std::unique_ptr<Compressor> inner, ToyHook before)
      : ForwardingCompressor(std::move(inner)), before_(std::move(before)) {}

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    before_("encode", unit, info, round);
    ForwardingCompressor::encode(context, unit, info, round, outlets);
  }
  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    before_("decode", unit, info, round);
    ForwardingCompressor::decode(context, unit, info, round, payloads);
  }

 private:
  ToyHook before_;
};

class WithTraits final : public ForwardingCompressor {
 public:
  WithTraits(std::unique_ptr<Compressor> inner, Traits traits)
      : ForwardingCompressor(std::move(inner)), traits_(std::move(traits)) {}
  Traits traits() const override { return traits_; }

 private:
  Traits traits_;
};

}  // namespace

std::unique_ptr<Compressor> toy_scaled_sum() { return std::make_unique<ScaledSum>(); }
std::unique_ptr<Compressor> toy_nonzeros() { return std::make_unique<NonZeros>(); }
std::unique_ptr<Compressor> toy_owners() { return std::make_unique<Owners>(); }
std::unique_ptr<Compressor> toy_tree(bool variable) { return std::make_unique<Tree>(variable); }
std::unique_ptr<Compressor> toy_silent_round() { return std::make_unique<SilentRound>(); }
std::unique_ptr<Compressor> toy_parity() { return std::make_unique<Parity>(); }
std::unique_ptr<Compressor> toy_guarded(int64_t cheap_from, std::atomic<int>* engaged) {
  return std::make_unique<Guarded>(cheap_from, engaged);
}
std::unique_ptr<Compressor> toy_hooked(std::unique_ptr<Compressor> inner, ToyHook before) {
  return std::make_unique<Hooked>(std::move(inner), std::move(before));
}
std::unique_ptr<Compressor> toy_with_traits(std::unique_ptr<Compressor> inner, Traits traits) {
  return std::make_unique<WithTraits>(std::move(inner), std::move(traits));
}

}  // namespace wisp
