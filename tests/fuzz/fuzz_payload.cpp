// Fuzz target for the payloads of peers: every registered method's decoders, for units of several
// sizes. The first bytes choose method, options and unit (Plan). The rest is the payloads.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "compression/compressor.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

constexpr std::array<int64_t, 8> kSizes = {1, 2, 7, 64, 300, 4'099, 65'537, 140'000};
constexpr size_t kSmall = 6;  // number of sizes for slices after the first, for speed
constexpr std::array kValues = {"f32", "f16", "bf16", "natural"};
constexpr std::array kIndices = {"auto", "runs16", "u32", "gamma", "bitmap"};
constexpr std::array kRatios = {1.0, 0.5, 0.1, 0.01, 0.001, 1e-6};
constexpr int64_t kGuard = 16;      // elements beside each slice that no decoder may touch
constexpr float kUntouched = 7.0f;  // value of those elements

std::vector<std::string> methods() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    if (name != "none") names.push_back(name);
  return names;
}

/// Takes bytes from the front of an input. After its end, next() returns 0.
class Bytes {
 public:
  explicit Bytes(std::string_view input) : left_(input) {}
  uint8_t next() {
    const std::string_view byte = take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  std::string_view take(size_t bytes) {
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(taken.size());
    return taken;
  }
  /// A payload after two bytes with its size, where 65535 stands for all that is left.
  std::string_view payload() {
    const size_t low = next();
    const size_t bytes = low + size_t{256} * next();
    return take(bytes == 65'535 ? left_.size() : bytes);
  }

 private:
  std::string_view left_;
};

struct Plan {
  std::string method;
  // bits 0 to 7: sampled selection, error feedback, a late stream, one joined field, Elias wire,
  // shared scale or positions, 8 bits, L2 norm
  uint8_t options = 0;
  uint8_t formats = 0;  // value format + number of value formats · index format
  int workers = 1;
  double ratio = 1.0;
  std::vector<int64_t> sizes;

  explicit Plan(Bytes& bytes) {
    static const std::vector<std::string> names = methods();
    method = names[bytes.next() % names.size()];
    options = bytes.next();
    formats = bytes.next();
    workers = 1 + bytes.next() % 3;
    ratio = kRatios[bytes.next() % kRatios.size()];
    for (int count = 1 + bytes.next() % 4; count > 0; --count)
      sizes.push_back(kSizes[bytes.next() % (sizes.empty() ? kSizes.size() : kSmall)]);
  }

  bool has(int bit) const { return (options >> bit & 1) != 0; }

  std::unique_ptr<Compressor> make() const {
    Config config = Config::from_text(
        concat("compression.values = '", kValues[formats % kValues.size()],
               "'\ncompression.indices = '", kIndices[formats / kValues.size() % kIndices.size()],
               "'\ncompression.selection = '", has(0) ? "sampled" : "exact",
               "'\ncompression.feedback = '", has(1) ? "ef" : "auto", "'\ncompression.wire = '",
               has(4) ? "elias" : "fixed", "'\ncompression.scaler = '", has(5) ? "shared" : "own",
               "'\ncompression.sharing = '", has(5) ? "shared" : "own", "'\ncompression.bits = ",
               has(6) ? 8 : 9, "\ncompression.norm = '", has(7) ? "l2" : "max", "'"),
        "plan.toml");
    const CompressorSetup setup{.workers = workers, .momentum = 0.9, .weight_decay = 1e-4};
    return CompressorRegistry::instance().find("compression method", method).make(config, setup);
  }

  std::vector<Field> fields(const Traits& traits) const {
    const bool joined =
        has(3) && std::count(traits.scopes.begin(), traits.scopes.end(), Scope::bucket) > 0;
    std::vector<Field> fields;
    int64_t offset = kGuard;
    for (const int64_t numel : sizes) {
      if (fields.empty() || !joined)
        fields.push_back({.key = fields.size() + 1, .rows = !joined && numel % 4 == 0 ? 4 : 1});
      fields.back().slices.push_back({offset, numel});
      fields.back().numel += numel;
      offset += numel + kGuard;
    }
    return fields;
  }
};

/// A worker with a unit. Guards lie beside each slice and after the scratch memory.
class Worker {
 public:
  explicit Worker(const Plan& plan)
      : test_({.late = plan.has(2)}),
        compressor_(plan.make()),
        fields_(plan.fields(compressor_->traits())) {
    info_.ranks = info_.summands = plan.workers;
    info_.ratio = plan.ratio;
    unit_.spec.fields = fields_;
    for (const Field& field : fields_) unit_.spec.numel += field.numel;
    const Slice& last = fields_.back().slices.back();
    const Shape arena{last.offset + last.numel + kGuard};
    for (Tensor* tensor : {&unit_.gradient, &unit_.weight, &unit_.momentum, &unit_.square})
      *tensor = Tensor(arena, DType::f32);
    for (const StateSpec& spec : compressor_->state(unit_.spec, plan.workers))
      state_.tensors.push_back(Tensor(spec.per_element ? arena : spec.shape, spec.dtype));
    unit_.state = &state_;
    scratch_bytes_ = compressor_->scratch_bytes(unit_.spec, info_);
    scratch_ = Tensor({scratch_bytes_ + kGuard}, DType::u8);
    unit_.scratch = scratch_.raw();
    std::fill_n(unit_.gradient.data<float>(), unit_.gradient.numel(), kUntouched);
    for_slices([&](const Slice& slice) {
      for (int64_t i = 0; i < slice.numel; ++i)
        unit_.gradient.data<float>()[slice.offset + i] = static_cast<float>(i * 7'919 % 1'009);
    });
  }

  /// Waits for the stream, because a payload may be refused while another is decoded.
  ~Worker() { settle(); }

  int rounds() const { return compressor_->rounds(unit_.spec, info_); }
  /// Number of ranks whose payloads are decoded.
  int senders(int round) const { return senders(compressor_->message(unit_.spec, info_, round)); }

  /// Encodes, and returns the payload for the first destination.
  std::string encode(int round) {
    const Message message = compressor_->message(unit_.spec, info_, round);
    size_t count = message.kind == Collective::all_to_all ? size_t(info_.ranks) : 1;
    if (message.kind == Collective::none || (message.kind == Collective::pair && message.to < 0))
      count = 0;
    sent_.clear();
    used_.assign(count, message.bytes);
    std::vector<Outlet> outlets;
    for (size_t i = 0; i < count; ++i) {
      sent_.push_back(Tensor({message.bytes}, DType::u8));
      outlets.push_back({sent_[i].raw(), message.bytes, message.variable ? &used_[i] : nullptr});
    }
    compressor_->encode(test_.context, unit_, info_, round, outlets);
    test_.stream.synchronize();
    if (count == 0) return "";
    return {reinterpret_cast<const char*>(sent_[0].raw()), static_cast<size_t>(used_[0])};
  }

  /// Decodes one payload from `bytes` for each rank that sends one.
  void decode(int round, Bytes& bytes) {
    const Message message = compressor_->message(unit_.spec, info_, round);
    received_.clear();
    for (int i = 0; i < senders(message); ++i) {
      const std::string_view sent = bytes.payload();
      const auto* begin = reinterpret_cast<const std::byte*>(sent.data());
      received_.emplace_back(begin, begin + sent.size());
    }
    std::vector<Payload> payloads;
    for (const std::vector<std::byte>& sent : received_) {
      const int from =
          message.kind == Collective::all_reduce ? -1 : static_cast<int>(payloads.size());
      payloads.push_back({from, sent.data(), static_cast<int64_t>(sent.size()), &complaint_});
    }
    compressor_->decode(test_.context, unit_, info_, round, payloads);
    test_.stream.synchronize();
  }

  /// Throws Finding if anything outside the unit was written.
  void check_guards() {
    settle();
    for_slices([&](const Slice& slice) {
      check_guard(slice.offset - kGuard);
      check_guard(slice.offset + slice.numel);
    });
    for (int64_t i = 0; i < kGuard; ++i) {
      if (scratch_.raw()[scratch_bytes_ + i] != std::byte{0})
        throw Finding("payload: the scratch's end was passed");
    }
  }

 private:
  void settle() {
    try {
      test_.stream.synchronize();
    } catch (const Error&) {
    }
  }
  int senders(const Message& message) const {
    switch (message.kind) {
      case Collective::none:
        return 0;
      case Collective::all_gather:
      case Collective::all_to_all:
      case Collective::neighbours:
        return info_.ranks;
      default:
        return 1;
    }
  }
  void check_guard(int64_t begin) {
    const float* guard = unit_.gradient.data<float>() + begin;
    if (std::any_of(guard, guard + kGuard, [](float value) { return value != kUntouched; }))
      throw Finding(concat("payload: the arena was written near element ", begin));
  }
  template <class F>
  void for_slices(const F& f) {
    for (const Field& field : fields_)
      for (const Slice& slice : field.slices) f(slice);
  }

  std::vector<Tensor> sent_;
  std::vector<int64_t> used_;
  // exact sizes, so that AddressSanitizer sees a read of one byte more
  std::vector<std::vector<std::byte>> received_;
  int64_t complaint_ = 0;
  TestContext test_;
  std::unique_ptr<Compressor> compressor_;
  std::vector<Field> fields_;
  State state_;
  Unit unit_;
  StepInfo info_;
  Tensor scratch_;
  int64_t scratch_bytes_ = 0;
};

/// An input that `Plan` and `Worker` read as a valid exchange of these sizes.
std::string good_exchange(uint8_t method, uint8_t options, uint8_t formats, uint8_t workers,
                          uint8_t ratio, const std::vector<uint8_t>& sizes) {
  std::string input;
  for (const size_t byte : {size_t{method}, size_t{options}, size_t{formats}, workers - size_t{1},
                            size_t{ratio}, sizes.size() - 1})
    input += static_cast<char>(byte);
  input.append(sizes.begin(), sizes.end());
  Bytes bytes(input);
  Worker worker{Plan(bytes)};
  for (int round = 0; round < worker.rounds(); ++round) {
    const std::string sent = worker.encode(round);
    std::string payloads;
    for (int i = 0; i < worker.senders(round); ++i) {
      payloads += static_cast<char>(sent.size() & 0xff);
      payloads += static_cast<char>(sent.size() >> 8 & 0xff);
      payloads += sent;
    }
    Bytes received(payloads);
    worker.decode(round, received);
    input += payloads;
  }
  return input;
}

}  // namespace

void fuzz(std::string_view input) {
  Bytes bytes(input);
  const Plan plan(bytes);
  std::optional<Worker> worker;
  try {
    worker.emplace(plan);
  } catch (const Error&) {
    return;  // not every code has error feedback
  }
  try {
    for (int round = 0; round < worker->rounds(); ++round) {
      if (round > 0) worker->encode(round);
      worker->decode(round, bytes);
    }
  } catch (const Error&) {
  }
  worker->check_guards();
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint8_t method = 0; method < methods().size(); ++method) {
    const auto add = [&](uint8_t options, uint8_t workers, uint8_t ratio,
                         const std::vector<uint8_t>& sizes, uint8_t formats = 0) {
      try {
        seeds.push_back(good_exchange(method, options, formats, workers, ratio, sizes));
      } catch (const Error&) {
        // not every code has error feedback, and a payload's size must fit into two bytes
      }
    };
    add(0, 1, 2, {4});
    add(0b0011'0001, 3, 1, {2, 3, 4});
    add(0b0000'1010, 2, 4, {3, 5});
    add(0b0100'0100, 1, 0, {0, 1});
    add(0b1101'1000, 2, 2, {3, 4});
    add(0, 2, 5, {7, 5});  // gaps beyond 16 bits
    if (methods()[method] != "topk") continue;
    constexpr auto kFormats = static_cast<uint8_t>(kValues.size() * kIndices.size());
    for (uint8_t formats = 0; formats < kFormats; ++formats) add(0, 2, 3, {5, 3}, formats);
  }
  return seeds;
}

/// The largest unit has 152,297 elements. Arenas, state and scratch are some copies of that.
int64_t fuzz_memory(int64_t input_bytes) { return (64 << 20) + 4 * input_bytes; }

}  // namespace wisp
