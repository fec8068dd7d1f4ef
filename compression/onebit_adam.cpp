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
#include "compression/field_reduce.h"
#include "compression/sign_plane.h"

namespace wisp {
namespace {

/// What is compressed, and the error it is compensated with: of a worker's share of the moment, or
/// (keep = 0, share = 1) of the sum at its owner.
struct Compensated {
  const float* gradient;  // or null: it is not finite
  const float* moment;
  float keep, share;
  float* error;

  WISP_HD bool silent(int64_t i) const { return !gradient || moment[i] == 0.0f; }
  WISP_HD float peek(int64_t i) const {
    return silent(i) ? 0.0f : error[i] + (keep * moment[i] + share * gradient[i]);
  }
  WISP_HD float take(int64_t i) const {
    const float value = peek(i);
    if (!silent(i)) error[i] = value;
    return value;
  }
  WISP_HD void sent(int64_t i, float part) const {
    if (!silent(i)) error[i] -= part;
  }
};

struct Norm {
  double squares;
  int64_t count;
};

struct NormOf {
  using Value = Norm;
  Compensated source;
  int64_t offset;
  WISP_HD Norm identity() const { return {0.0, 0}; }
  WISP_HD Norm map(int64_t i) const {
    const double value = source.peek(offset + i);
    return {value * value, !source.silent(offset + i)};
  }
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

/// Elements without a moment get none.
struct Silence {
  const float* moment;
  float* result;
  WISP_HD void operator()(int64_t i) const {
    if (moment[i] == 0.0f) result[i] = 0.0f;
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
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return sizeof(Norm); }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = bytes_of(spec, info.workers)};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const bool own = round == 1;
    Compensated source{unit.gradient.data<float>(), unit.momentum.data<float>(), 0.0f, 1.0f,
                       unit.state->tensors[own ? 1 : 0].data<float>()};
    if (!own) {
      if (!unit.finite) source.gradient = nullptr;
      source.keep = static_cast<float>(beta1_ / info.workers);
      source.share = static_cast<float>(1.0 - beta1_);
    }
    auto* norm = reinterpret_cast<Norm*>(unit.scratch);
    each_field(unit.spec, info.workers, [&](size_t f, const Slice& whole, int64_t begin) {
      auto* scale = reinterpret_cast<float*>(outlets[0].data) + f;
      const Slice measured = own ? part_of(whole, info.rank, info.workers) : whole;
      parallel_reduce(context.stream, measured.numel, NormOf{source, measured.offset}, norm);
      run_once(context.stream, ScaleOf{norm, scale});
      for (size_t i = 0; i < outlets.size(); ++i) {
        const int owner = own ? info.rank : static_cast<int>(i);
        if (i > 0) {
          run_once(context.stream, CopyScale{scale, reinterpret_cast<float*>(outlets[i].data) + f});
        }
        write_signs(context.stream, source, part_of(whole, owner, info.workers), scale,
                    outlets[i].data + begin);
      }
    });
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const int64_t bytes = bytes_of(unit.spec, info.workers);
    float* result = unit.gradient.data<float>();
    for (size_t i = 0; i < payloads.size(); ++i) {
      WISP_CHECK(payloads[i].bytes == bytes, "onebit_adam: the payload of rank ", payloads[i].from,
                 " has ", payloads[i].bytes, " bytes, expected ", bytes);
      const int owner = round == 0 ? info.rank : payloads[i].from;
      const auto* scales = reinterpret_cast<const float*>(payloads[i].data);
      each_field(unit.spec, info.workers, [&](size_t f, const Slice& whole, int64_t begin) {
        const Slice part = part_of(whole, owner, info.workers);
        read_signs(context.stream, payloads[i].data + begin, scales + f, 1.0f, round == 0 && i > 0,
                   result + part.offset, part.numel);
      });
    }
    each_field(unit.spec, info.workers, [&](size_t, const Slice& whole, int64_t) {
      parallel_for(context.stream, whole.numel,
                   Silence{unit.momentum.data<float>() + whole.offset, result + whole.offset});
    });
  }

 private:
  /// Bytes of bits of a field that go to one owner.
  static int64_t part_bytes(int64_t numel, int workers) {
    return (numel + 8 * workers - 1) / (8 * workers);
  }
  static Slice part_of(const Slice& whole, int owner, int workers) {
    const int64_t size = 8 * part_bytes(whole.numel, workers);
    const int64_t begin = std::min(whole.numel, owner * size);
    return {whole.offset + begin, std::min(whole.numel, begin + size) - begin};
  }
  static int64_t bytes_of(const UnitSpec& spec, int workers) {
    int64_t bytes = 4 * static_cast<int64_t>(spec.fields.size());
    for (const Field& field : spec.fields) bytes += part_bytes(field.numel, workers);
    return bytes;
  }
  /// visit(field, its slice, where the payload has its bits).
  template <class Visit>
  static void each_field(const UnitSpec& spec, int workers, const Visit& visit) {
    int64_t begin = 4 * static_cast<int64_t>(spec.fields.size());
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      visit(f, spec.fields[f].slices.front(), begin);
      begin += part_bytes(spec.fields[f].numel, workers);
    }
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
