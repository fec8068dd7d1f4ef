// 1-bit Adam: after a warm-up of plain Adam, the second moment is frozen, and the first moment m is
// sent as signs. Per worker and field of d elements, with gradient g (divided by the number of
// workers N) and m equal on all ranks:
//   a = β1 m / N + (1 - β1) g + e;   send  D = (|a|_2 / sqrt(d)) sgn(a);   e <- a - D
// Each worker owns a part of every field. It adds up what it receives for this part, s, and
// compresses the sum in the same way with its own error e'; the result is m:
//   m = (|s + e'|_2 / sqrt(d')) sgn(s + e');   e' <- s + e' - m
//   w <- w - lr (m / (sqrt(v) + ε) + λ w)          with the optimizer's correction of v
// A sign cannot express 0. Elements whose m is 0 at the end of the warm-up never had a gradient
// (unused rows of an embedding) and have no second moment to divide by. They are excluded for the
// rest of the run, and not counted in d. Elsewhere zero counts as +. A worker whose gradient is not
// finite has a = β1 m / N, and keeps its e. The optimizer's bias correction of m continues as in
// Adam; that of v is frozen with v. Wire, to owner and from owner: a scale (f32) per field, then
// ceil(numel / 8 N) bytes of each field. Source: Tang et al. 2021, algorithm 1, and its authors'
// code (scales by the 2-norm, no bias correction there, a mask given by the user).
#include <algorithm>
#include <cmath>

#include "compression/cursor.h"
#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/quantize/live_signs.h"
#include "compression/slices.h"

namespace wisp {
namespace {

struct ScaleOf {
  const live::Norm* norm;
  float* scale;
  WISP_HD void operator()() const {
    *scale = norm->count == 0
                 ? 0.0f
                 : static_cast<float>(sqrt(norm->squares / static_cast<double>(norm->count)));
  }
};

class OneBitAdam final : public Compressor {
 public:
  explicit OneBitAdam(const OneBitAdamOptions& options) : options_(options) {}

  Traits traits() const override {
    return {.momentum = Home::compressor,
            .result = UpdateRule::momentum,
            .scopes = {Scope::layer},
            .dense_1d = false};
  }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}, {.name = "owner_residual", .on_resize = OnResize::owner}};
  }
  std::vector<Slice> owned(const UnitSpec& spec, int rank, int ranks) const override {
    std::vector<Slice> slices;
    for (const Field& field : spec.fields) {
      const Slice& whole = field.slices.front();
      const Slice part = part_of(whole, part_bytes(field.numel, ranks), rank);
      if (part.numel > 0) slices.push_back(part);
    }
    return slices;
  }
  std::string remark(const UnitSpec&) const override {
    const double memory = 1.0 / (1.0 - options_.beta2);  // in updates
    if (static_cast<double>(options_.freeze_step) >= memory) return {};
    return concat("compression.freeze_step = ", options_.freeze_step,
                  " freezes the second moment before it has seen 1 / (1 - optimizer.beta2) = ",
                  std::round(memory), " updates; a smaller beta2 remembers fewer");
  }
  bool started(const StepInfo& info) const override { return info.applied >= options_.freeze_step; }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<Scratch>(spec, info.ranks);
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = bytes_of(spec, info.ranks)};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const Stream& stream = context.stream;
    float* error = unit.state->tensors[static_cast<size_t>(round)].data<float>();
    const bool keeps = unit.finite || round == 1;
    const float* numbers = keeps ? error : unit.momentum.data<float>();
    live::Norm* norms = lay_out<Scratch>(unit.scratch, unit.spec, info.ranks).norms;
    auto* scales = reinterpret_cast<float*>(outlets[0].data);
    SmallTeams<live::WriteSigns> writes(stream);
    each_field(unit, info.ranks, [&](size_t f, const Parts& parts, int64_t begin) {
      const int64_t runs = compensate(stream, unit, info, round, parts, error, norms + 1);
      parallel_reduce(stream, runs, live::AddNorms{norms + 1}, norms);
      run_once(stream, ScaleOf{norms, scales + f});
      for (size_t i = 0; i < outlets.size(); ++i) {
        const int owner = round == 0 ? static_cast<int>(i) : info.rank;
        const Slice part = parts.of(owner);
        std::byte* signs = outlets[i].data + begin;
        writes.add(Plane<1>::groups(part.numel),
                   {numbers + part.offset,
                    keeps ? error + part.offset : nullptr,
                    scales + f,
                    parts.live_of(owner),
                    {signs, part.numel}},
                   group::kSize);
        clear_bytes(stream, signs + Plane<1>::bytes(part.numel), signs + parts.bytes);
      }
    });
    writes.finish();
    for (const Outlet& outlet : outlets.subspan(1))
      parallel_for(stream, std::ssize(unit.spec.fields),
                   CopyAll<float>{scales, reinterpret_cast<float*>(outlet.data)});
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const int64_t bytes = bytes_of(unit.spec, info.ranks);
    for (size_t i = 0; i < payloads.size(); ++i) {
      const Payload& payload = payloads[i];
      payload.expect("onebit_adam", bytes);
      const auto* scales = reinterpret_cast<const float*>(payload.data);
      SmallTeams<ReadSigns> adds(context.stream);
      SmallTeams<live::ReadSigns> reads(context.stream);
      each_field(unit, info.ranks, [&](size_t f, const Parts& parts, int64_t begin) {
        const int owner = round == 0 ? info.rank : payload.from;
        const Slice part = parts.of(owner);
        float* into = unit.gradient.data<float>() + part.offset;
        const std::byte* signs = payload.data + begin;
        const int64_t groups = Plane<1>::groups(part.numel);
        if (round == 0) {
          adds.add(groups, {{signs, part.numel}, scales + f, 1.0f, i > 0, into}, group::kSize);
        } else {
          reads.add(groups, {{signs, part.numel}, parts.live_of(owner), scales + f, into},
                    group::kSize);
        }
      });
      adds.finish();
      reads.finish();
    }
  }

  /// The residuals are parts of the average m, in which a gradient has the weight 1 - β1.
  void release(Context& context, Unit& unit, const StepInfo&) override {
    for (const Tensor& residual : unit.state->tensors)
      hand_over(context, unit, residual, 1.0 / (1.0 - options_.beta1));
  }

 private:
  /// The part of a field that `owner` owns; each part has `bytes` bytes of bits.
  static Slice part_of(const Slice& whole, int64_t bytes, int owner) {
    const int64_t begin = std::min(whole.numel, owner * 8 * bytes);
    return {whole.offset + begin, std::min(whole.numel, begin + 8 * bytes) - begin};
  }

  /// The parts of a field, one for each owner, and the bits of their live elements.
  struct Parts {
    Slice whole;
    int64_t bytes;  // bytes of a part's bits
    std::byte* live;

    Slice of(int owner) const { return part_of(whole, bytes, owner); }
    Plane<1> live_of(int owner) const { return {live + owner * bytes, of(owner).numel}; }
  };

  static int64_t scales_bytes(const UnitSpec& spec) { return 4 * std::ssize(spec.fields); }
  static int64_t bytes_of(const UnitSpec& spec, int ranks) {
    return scales_bytes(spec) +
           sum_of_fields(spec, [&](const Field& field) { return part_bytes(field.numel, ranks); });
  }
  /// Bytes of a field's bits that go to one owner.
  static int64_t part_bytes(int64_t numel, int ranks) {
    return (numel + 8 * ranks - 1) / (8 * ranks);
  }
  static int64_t runs_of(int64_t numel) { return (numel + live::kRun - 1) / live::kRun; }
  static int64_t longest(const UnitSpec& spec) {
    int64_t most = 0;
    for (const Field& field : spec.fields) most = std::max(most, field.numel);
    return most;
  }

  /// Scratch of a unit.
  struct Scratch {
    live::Norm* norms;  // norm of a field, then norms of its runs
    std::byte* live;    // live bits: field after field, the parts of all owners

    Scratch(Cursor& cursor, const UnitSpec& spec, int ranks)
        : norms(cursor.take<live::Norm>(1 + runs_of(longest(spec)))),
          live(cursor.take<std::byte>(ranks * (bytes_of(spec, ranks) - scales_bytes(spec)))) {}
  };

  /// visit(f, parts, begin) for each field; `begin` is where its bits begin in a payload.
  template <class Visit>
  static void each_field(const Unit& unit, int ranks, const Visit& visit) {
    int64_t begin = scales_bytes(unit.spec);
    std::byte* live = lay_out<Scratch>(unit.scratch, unit.spec, ranks).live;
    for (size_t f = 0; f < unit.spec.fields.size(); ++f) {
      const Field& field = unit.spec.fields[f];
      const int64_t bytes = part_bytes(field.numel, ranks);
      visit(f, Parts{field.slices.front(), bytes, live}, begin);
      begin += bytes;
      live += bytes * ranks;
    }
  }

  /// Computes the numbers to compress of the field, or of the own part of it. Returns the number of
  /// norms.
  int64_t compensate(const Stream& stream, const Unit& unit, const StepInfo& info, int round,
                     const Parts& parts, float* error, live::Norm* norms) const {
    const Slice part = round == 0 ? parts.whole : parts.of(info.rank);
    const int64_t runs = runs_of(part.numel);
    const float* gradient = unit.gradient.data<float>() + part.offset;
    error += part.offset;
    if (round == 0) {
      const live::Compensate<false> add{unit.finite ? gradient : nullptr,
                                        unit.momentum.data<float>() + part.offset,
                                        static_cast<float>(options_.beta1 / info.summands),
                                        static_cast<float>(1.0 - options_.beta1),
                                        error,
                                        {parts.live, part.numel},
                                        norms};
      parallel_small_teams(stream, runs, add, live::kRun);
    } else {
      const live::Compensate<true> add{
          gradient, nullptr, 0.0f, 1.0f, error, parts.live_of(info.rank), norms};
      parallel_small_teams(stream, runs, add, live::kRun);
    }
    return runs;
  }

  OneBitAdamOptions options_;
};

const CompressorRegistration onebit_adam_registration(
    "onebit_adam",
    "signs of Adam's first moment after a warm-up, for adamw only (Tang et al. 2021)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      OneBitAdamOptions options{setup.momentum, setup.beta2};
      config.bind("compression.freeze_step", options.freeze_step,
                  "onebit_adam: number of dense Adam updates before the second moment is frozen, "
                  "at least 1; about 15 to 20 % of all");
      return make_onebit_adam(options, config);
    });

}  // namespace

std::unique_ptr<Compressor> make_onebit_adam(const OneBitAdamOptions& options,
                                             const Config& places) {
  places.expect(options.freeze_step >= 1, "compression.freeze_step", options.freeze_step,
                "1 or more");
  for (const double beta : {options.beta1, options.beta2})
    WISP_CHECK(0.0 <= beta && beta < 1.0, "onebit_adam: beta1 and beta2 are ", options.beta1,
               " and ", options.beta2, ", expected numbers in [0, 1)");
  return std::make_unique<OneBitAdam>(options);
}

}  // namespace wisp
