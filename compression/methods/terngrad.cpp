// TernGrad: each number becomes -s, 0 or s, at random and unbiased. Source: Wen et al. 2017 and the
// authors' code; the numbers of equations are ours:
//   (1) clip    g_i <- sign(g_i) min(|g_i|, c sigma), c = 2.5, sigma the deviation of the layer's g
//   (2) scale   s = max |g|, which is c sigma wherever (1) clips; with scaler sharing, the largest
//               of all workers
//   (3) round   g~_i = s sign(g_i) b_i, b_i ~ Bernoulli(|g_i| / s)
// A trit has 2 bits, gathered with each worker's scale. With the shared scale it has ceil(log2(2 N
// + 1)) bits, summed by the wire. scaled_integers.h does (3), with one level. The authors leave
// small tensors and the last layer dense, for which the policy has max_numel and name. Ours: where
// sigma is 0 (one element, or all equal), nothing is clipped, because (1) would set all to zero.
#include "compression/field_reduce.h"
#include "compression/methods/methods.h"
#include "compression/slices.h"

namespace wisp {
namespace {

constexpr int64_t kRun = 512;  // elements per team

int64_t runs_of(int64_t numel) { return (numel + kRun - 1) / kRun; }

/// Moments of a field, from which sigma and max |g| follow.
struct Moments {
  double sum, squares;
  float largest;
};

/// Computes the moments of each run of a slice.
struct WriteMoments {
  struct Shared {};
  Source source;
  int64_t offset, numel;
  Moments* moments;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t run, Shared&) const {
    group::by_kind(source, [&](const Source& kind) { write(team, kind, run); });
  }
  template <class Team>
  WISP_HD void write(const Team& team, const Source& kind, int64_t run) const {
    typename Team::template PerLane<double> sum, squares;
    typename Team::template PerLane<int32_t> largest;
    const int64_t size = numel - run * kRun < kRun ? numel - run * kRun : kRun;
    group::each_group(kind, offset + run * kRun, size, [&](const auto& x) {
      team.lanes([&](int64_t j) {
        group::gather<group::Add>(sum, j, x, group::AsDouble());
        group::gather<group::Add>(squares, j, x, group::Square());
        group::gather<group::Max>(largest, j, x, group::MagnitudeBits());
      });
    });
    const Moments all{team.fold(sum, group::Add()), team.fold(squares, group::Add()),
                      float_from_bits(static_cast<uint32_t>(team.fold(largest, group::Max())))};
    team.once([&] { moments[run] = all; });
  }
};

struct MomentsOf {
  using Value = Moments;
  const Moments* moments;  // indexed by run
  WISP_HD Moments identity() const { return {0.0, 0.0, 0.0f}; }
  WISP_HD Moments map(int64_t run) const { return moments[run]; }
  WISP_HD Moments combine(Moments a, Moments b) const {
    return {a.sum + b.sum, a.squares + b.squares, a.largest < b.largest ? b.largest : a.largest};
  }
};

/// Steps (1) and (2): the scale to which a worker clips.
struct SetClipped {
  double clip;
  float* scale;
  WISP_HD void operator()(int64_t f, int64_t numel, const Moments& moments) const {
    const double mean = moments.sum / static_cast<double>(numel);
    const double square = moments.squares / static_cast<double>(numel);
    const double variance = square - mean * mean;
    scale[f] = moments.largest;
    if (variance <= 1e-12 * square) return;  // 0 up to rounding
    const double bound = clip * sqrt(variance);
    if (bound < static_cast<double>(scale[f])) scale[f] = static_cast<float>(bound);
  }
};

/// The runs of slices, numbered through the unit.
struct Runs {
  int64_t first = 0;
  Slice operator()(const Slice& slice) {
    const Slice runs{first, runs_of(slice.numel)};
    first += runs.numel;
    return runs;
  }
};

/// Scratch of own_scales.
struct TerngradScratch {
  Moments* moments;  // indexed by run
  FieldPartials<Moments> partials;

  TerngradScratch(Cursor& cursor, const UnitSpec& spec)
      : moments(cursor.take<Moments>(sum_of_slices(spec, runs_of))),
        partials(cursor, spec.fields, Runs()) {}
};

class TerngradCode final : public ScaledIntegers {
 public:
  explicit TerngradCode(const TerngradOptions& options)
      : ScaledIntegers("terngrad", 1, true, options.integers), clip_(options.clip) {}

 protected:
  void own_scales(const Stream& stream, const Source& source, const UnitSpec& spec,
                  std::byte* memory, float* scale) const override {
    if (clip_ == 0.0) return ScaledIntegers::own_scales(stream, source, spec, memory, scale);
    const auto scratch = lay_out<TerngradScratch>(memory, spec);
    SmallTeams<WriteMoments> slices(stream);
    Moments* moments = scratch.moments;
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      slices.add(runs_of(slice.numel), {source, slice.offset, slice.numel, moments}, kRun);
      moments += runs_of(slice.numel);
    });
    slices.finish();
    reduce_fields(stream, spec.fields, MomentsOf{scratch.moments}, scratch.partials,
                  SetClipped{clip_, scale}, Runs());
  }
  int64_t own_scales_bytes(const UnitSpec& spec) const override {
    if (clip_ == 0.0) return ScaledIntegers::own_scales_bytes(spec);
    return layout_bytes<TerngradScratch>(spec);
  }

 private:
  double clip_;
};

const CodeRegistration terngrad_registration(
    "terngrad", "ternary gradients, rounded at random (Wen et al. 2017)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      TerngradOptions options;
      options.integers.bind_scaler(config, setup);
      config.bind("compression.clip", options.clip,
                  "terngrad: clipping bound of gradients in standard deviations, 0 or more; 0: no "
                  "clipping");
      return make_terngrad(options, config);
    },
    Feedback::none);

}  // namespace

std::unique_ptr<Code> make_terngrad(const TerngradOptions& options, const Config& places) {
  places.expect(options.clip >= 0.0, "compression.clip", options.clip, "0 or more");
  return std::make_unique<TerngradCode>(options);
}

}  // namespace wisp
