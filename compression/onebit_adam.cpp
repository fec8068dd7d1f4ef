// 1-bit Adam: after a warm-up of plain Adam the second moment stands still, and the first moment m
// travels as signs. Per worker, with gradient g (over the workers N) and m the same on all ranks:
//   a = β1 m / N + (1 - β1) g + e;   send  D = (|a|_2 / sqrt(d)) sgn(a);   e <- a - D     (d
//   elements)
// Each worker owns a part of every field, adds up what it gets of it, s, and does the same to that
// with an error e' of its own; what it sends back is m:
//   m = (|s + e'|_2 / sqrt(d')) sgn(s + e');   e' <- s + e' - m;   w <- w - lr (m / (sqrt(v) + ε) +
//   λ w)
// A sign cannot say 0: elements whose m is 0 at the end of the warm-up never had a gradient (unused
// rows of an embedding) and have no second moment to divide by; they stay out, for ever, and out of
// d. Zero counts as + elsewhere. The optimizer's bias correction goes on as in Adam.
// Wire, to owner and from owner: a scale (f32) per field, then ceil(numel / 8 N) bytes of each
// field. Source: Tang et al. 2021, algorithm 1, and its authors' code (scales by the 2-norm, no
// correction of the bias there, a mask given by the user).
#include <algorithm>
#include <cmath>

#include "compression/compressor.h"
#include "compression/sign_plane.h"

namespace wisp {
namespace {

constexpr int64_t kRun = 4096;  // elements a call adds up
static_assert(kRun / group::kSize < 256);

struct Norm {
  double squares;
  int64_t count;
};

/// e <- the numbers to compress, but for silent elements, and the norm of each run of them: a
/// worker's share of the moment, or, at its owner, the sum.
template <bool kOwner>
struct Compensate {
  const float* gradient;  // or null: it is not finite
  const float* moment;    // null at the owner, where `live` is known
  float keep, share;
  float* error;
  Plane<1> live;
  Norm* norm;

  WISP_HD void operator()(int64_t run) const {
    double lane[group::kLanes] = {};
    uint8_t counted[group::kSize] = {};  // groups where the element speaks
    const int64_t end = live.numel - run * kRun < kRun ? live.numel : (run + 1) * kRun;
    for (int64_t at = run * kRun; at < end; at += group::kSize) {
      float x[group::kSize] = {};
      uint8_t speaks[group::kSize] = {};
      const int64_t size = group::size_at(at, end);
      if (size == group::kSize) {
        take(at, group::kSize, speaks, x);
      } else {
        take(at, size, speaks, x);
      }
      for (int64_t j = 0; j < group::kSize; ++j)
        counted[j] = static_cast<uint8_t>(counted[j] + speaks[j]);
      group::gather<group::Add>(lane, x, group::Square());
    }
    int64_t count = 0;
    for (int64_t j = 0; j < group::kSize; ++j) count += counted[j];
    norm[run] = {group::fold<group::Add>(lane), count};
  }
  /// Which elements of a group are not silent, and x = the numbers of those, 0 of others.
  WISP_HD void take(int64_t at, int64_t size, uint8_t* speaks, float* x) const {
    if constexpr (kOwner) {
      live.load(at / group::kSize, speaks);
    } else {
      for (int64_t j = 0; j < size; ++j) speaks[j] = moment[at + j] != 0.0f;
      live.store(at / group::kSize, speaks);
    }
    if (!gradient) return;
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) {
      const float old = error[at + j];
      const float value = old + number(at + j);
      x[j] = speaks[j] ? value : 0.0f;
      error[at + j] = speaks[j] ? value : old;
    }
  }
  WISP_HD float number(int64_t i) const {
    if constexpr (kOwner) return gradient[i];
    return keep * moment[i] + share * gradient[i];
  }
};

struct AddNorms {
  using Value = Norm;
  const Norm* norm;
  WISP_HD Norm identity() const { return {0.0, 0}; }
  WISP_HD Norm map(int64_t i) const { return norm[i]; }
  WISP_HD Norm combine(Norm a, Norm b) const { return {a.squares + b.squares, a.count + b.count}; }
};

struct ScaleOf {
  const Norm* norm;
  float* scale;
  WISP_HD void operator()() const {
    *scale = norm->count == 0
                 ? 0.0f
                 : static_cast<float>(sqrt(norm->squares / static_cast<double>(norm->count)));
  }
};

struct CopyScale {
  const float* from;
  float* to;
  WISP_HD void operator()() const { *to = *from; }
};

/// The signs of the compensated numbers, which leave what does not travel; + of silent ones.
struct WriteLive {
  float* error;
  const float* scale;
  Plane<1> live, plane;
  WISP_HD void operator()(int64_t group) const {
    const int64_t at = group * group::kSize;
    const int64_t size = group::size_at(at, plane.numel);
    if (size == group::kSize) {
      write(group, at, group::kSize);
    } else {
      write(group, at, size);
    }
  }
  WISP_HD void write(int64_t group, int64_t at, int64_t size) const {
    uint8_t speaks[group::kSize];
    live.load(group, speaks);
    float x[group::kSize] = {};
    for (int64_t j = 0; j < size; ++j) x[j] = speaks[j] ? error[at + j] : 0.0f;
    store_signs(plane, group, size, x);
    const float high = *scale;
    for (int64_t j = 0; j < size; ++j) {
      const float part = x[j] >= 0.0f ? high : -high;
      error[at + j] -= speaks[j] ? part : 0.0f;
    }
  }
};

/// The moment, without one for what is silent.
struct ReadLive {
  ReadPlane plane;
  Plane<1> live;
  const float* scale;
  float* into;
  WISP_HD void operator()(int64_t group) const {
    const int64_t at = group * group::kSize;
    uint8_t positive[group::kSize], speaks[group::kSize];
    plane.load(group, positive);
    live.load(group, speaks);
    const float high = *scale;
    float value[group::kSize];
    for (int64_t j = 0; j < group::kSize; ++j) {
      const float sent = positive[j] ? high : -high;
      value[j] = speaks[j] ? sent : 0.0f;
    }
    group::give(value, group::size_at(at, plane.numel), 1.0f, false, into + at);
  }
};

class OneBitAdam final : public Compressor {
 public:
  OneBitAdam(double beta1, int64_t freeze_step) : beta1_(beta1), freeze_step_(freeze_step) {}

  Traits traits() const override {
    return {.momentum = Home::compressor,
            .result = UpdateRule::momentum,
            .scopes = {Scope::layer},
            .dense_1d = false};
  }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}, {.name = "owner_residual", .on_resize = OnResize::sum}};
  }
  bool started(const StepInfo& info) const override { return info.applied >= freeze_step_; }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return norms_bytes(spec) + info.workers * (bytes_of(spec, info.workers) - scales_bytes(spec));
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = bytes_of(spec, info.workers)};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const Stream& stream = context.stream;
    float* error = unit.state->tensors[static_cast<size_t>(round)].data<float>();
    auto* norms = reinterpret_cast<Norm*>(unit.scratch);
    each_field(unit, info.workers, [&](size_t f, const Parts& parts, int64_t begin) {
      const int64_t runs = compensate(stream, unit, info, round, parts, error, norms + 1);
      auto* scale = reinterpret_cast<float*>(outlets[0].data) + f;
      parallel_reduce(stream, runs, AddNorms{norms + 1}, norms);
      run_once(stream, ScaleOf{norms, scale});
      for (size_t i = 0; i < outlets.size(); ++i) {
        const int owner = round == 0 ? static_cast<int>(i) : info.rank;
        if (i > 0)
          run_once(stream, CopyScale{scale, reinterpret_cast<float*>(outlets[i].data) + f});
        const Slice part = parts.of(owner);
        parallel_for(stream, Plane<1>::groups(part.numel),
                     WriteLive{error + part.offset,
                               scale,
                               parts.live_of(owner),
                               {outlets[i].data + begin, part.numel}},
                     group::kSize);
      }
    });
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const int64_t bytes = bytes_of(unit.spec, info.workers);
    for (size_t i = 0; i < payloads.size(); ++i) {
      const Payload& payload = payloads[i];
      WISP_CHECK(payload.bytes == bytes, "onebit_adam: the payload of rank ", payload.from, " has ",
                 payload.bytes, " bytes, expected ", bytes);
      const auto* scales = reinterpret_cast<const float*>(payload.data);
      each_field(unit, info.workers, [&](size_t f, const Parts& parts, int64_t begin) {
        const int owner = round == 0 ? info.rank : payload.from;
        const Slice part = parts.of(owner);
        float* into = unit.gradient.data<float>() + part.offset;
        const std::byte* signs = payload.data + begin;
        if (round == 0) {
          read_signs(context.stream, signs, scales + f, 1.0f, i > 0, into, part.numel);
        } else {
          parallel_for(context.stream, Plane<1>::groups(part.numel),
                       ReadLive{{signs, part.numel}, parts.live_of(owner), scales + f, into},
                       group::kSize);
        }
      });
    }
  }

 private:
  /// A field's parts, one for each owner, and which elements of them are live.
  struct Parts {
    Slice whole;
    int64_t bytes;  // of a part's bits
    std::byte* live;

    Slice of(int owner) const {
      const int64_t begin = std::min(whole.numel, owner * 8 * bytes);
      return {whole.offset + begin, std::min(whole.numel, begin + 8 * bytes) - begin};
    }
    Plane<1> live_of(int owner) const { return {live + owner * bytes, of(owner).numel}; }
  };

  static int64_t scales_bytes(const UnitSpec& spec) {
    return 4 * static_cast<int64_t>(spec.fields.size());
  }
  static int64_t bytes_of(const UnitSpec& spec, int workers) {
    int64_t bytes = scales_bytes(spec);
    for (const Field& field : spec.fields) bytes += part_bytes(field.numel, workers);
    return bytes;
  }
  /// Of bits of a field that go to one owner.
  static int64_t part_bytes(int64_t numel, int workers) {
    return (numel + 8 * workers - 1) / (8 * workers);
  }
  static int64_t runs_of(int64_t numel) { return (numel + kRun - 1) / kRun; }
  /// Of scratch, before what is live: the norm of a field, then those of its runs.
  static int64_t norms_bytes(const UnitSpec& spec) {
    int64_t most = 0;
    for (const Field& field : spec.fields) most = std::max(most, field.numel);
    return static_cast<int64_t>(sizeof(Norm)) * (1 + runs_of(most));
  }

  /// visit(number of the field, its parts, where a payload has the bits of one).
  template <class Visit>
  static void each_field(const Unit& unit, int workers, const Visit& visit) {
    int64_t begin = scales_bytes(unit.spec);
    std::byte* live = unit.scratch + norms_bytes(unit.spec);
    for (size_t f = 0; f < unit.spec.fields.size(); ++f) {
      const Field& field = unit.spec.fields[f];
      const int64_t bytes = part_bytes(field.numel, workers);
      visit(f, Parts{field.slices.front(), bytes, live}, begin);
      begin += bytes;
      live += bytes * workers;
    }
  }

  /// Of the field, or the own part of it; returns how many norms it has.
  int64_t compensate(const Stream& stream, const Unit& unit, const StepInfo& info, int round,
                     const Parts& parts, float* error, Norm* norms) const {
    const float* gradient = unit.gradient.data<float>();
    if (round == 1) {
      const Slice part = parts.of(info.rank);
      const int64_t runs = runs_of(part.numel);
      parallel_for(stream, runs,
                   Compensate<true>{gradient + part.offset, nullptr, 0.0f, 1.0f,
                                    error + part.offset, parts.live_of(info.rank), norms},
                   kRun);
      return runs;
    }
    const Slice& whole = parts.whole;
    const int64_t runs = runs_of(whole.numel);
    parallel_for(stream, runs,
                 Compensate<false>{unit.finite ? gradient + whole.offset : nullptr,
                                   unit.momentum.data<float>() + whole.offset,
                                   static_cast<float>(beta1_ / info.workers),
                                   static_cast<float>(1.0 - beta1_),
                                   error + whole.offset,
                                   {parts.live, whole.numel},
                                   norms},
                 kRun);
    return runs;
  }

  double beta1_;
  int64_t freeze_step_;
};

const CompressorRegistration registration(
    "onebit_adam", "Adam's first moment as signs after a warm-up (Tang et al. 2021); needs adamw",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Compressor> {
      int64_t freeze_step = 100'000;
      config.bind("compression.freeze_step", freeze_step,
                  "onebit_adam: updates of dense Adam before its second moment is frozen, at least "
                  "1; about 15 to 20 % of all");
      WISP_CHECK(freeze_step >= 1, config.where("compression.freeze_step"),
                 ": compression.freeze_step is ", freeze_step, ", expected 1 or more");
      return std::make_unique<OneBitAdam>(setup.momentum, freeze_step);
    });

}  // namespace
}  // namespace wisp
