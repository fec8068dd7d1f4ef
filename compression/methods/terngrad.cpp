// TernGrad: each number becomes -s, 0 or s, at random, so that its mean is right. Source: Wen et
// al. 2017 and the authors' code; the numbers of equations are ours:
//   (1) clip    g_i <- sign(g_i) min(|g_i|, c sigma), c = 2.5, sigma the deviation of the layer's g
//   (2) scale   s = max |g|, which is c sigma wherever (1) clips; with scaler sharing the largest
//               of all workers'
//   (3) round   g~_i = s sign(g_i) b_i, b_i ~ Bernoulli(|g_i| / s)
// A trit has 2 bits (gathered, each with its scale), or, with the shared scale, is summed by the
// wire in ceil(log2(2 N + 1)) bits: scaled_integers.h, where (3) is, with one level. The authors
// leave small tensors and the last layer alone: the policy's max_numel and name. Ours: where sigma
// is 0 (one element, or all equal), nothing is clipped; (1) would leave nothing of it.
#include "compression/error_feedback.h"
#include "compression/field_reduce.h"
#include "compression/quantize/scaled_integers.h"

namespace wisp {
namespace {

/// What sigma and max |g| of a field come from.
struct Moments {
  double sum, squares;
  float largest;
};

/// Of runs of a slice: a loop over single elements would not be vectorised.
struct MomentsOf {
  using Value = Moments;
  static constexpr int64_t kRun = 512;
  Source source;
  int64_t offset, numel;
  WISP_HD Moments identity() const { return {0.0, 0.0, 0.0f}; }
  WISP_HD Moments map(int64_t run) const {
    Moments moments;
    group::by_kind(source, [&](const Source& kind) { moments = of(kind, run); });
    return moments;
  }
  WISP_HD Moments of(const Source& kind, int64_t run) const {
    const LoneThread team;
    LoneThread::PerLane<double> sum, squares;
    LoneThread::PerLane<int32_t> largest;
    const int64_t size = numel - run * kRun < kRun ? numel - run * kRun : kRun;
    group::each_group(kind, offset + run * kRun, size, [&](const auto& x) {
      team.lanes([&](int64_t j) {
        group::gather<group::Add>(sum, j, x, group::AsDouble());
        group::gather<group::Add>(squares, j, x, group::Square());
        group::gather<group::Max>(largest, j, x, group::MagnitudeBits());
      });
    });
    return {team.fold(sum, group::Add()), team.fold(squares, group::Add()),
            float_from_bits(static_cast<uint32_t>(team.fold(largest, group::Max())))};
  }
  WISP_HD Moments combine(Moments a, Moments b) const {
    return {a.sum + b.sum, a.squares + b.squares, a.largest < b.largest ? b.largest : a.largest};
  }
};

/// (1) and (2): a worker clips to its own scale.
struct ClippedScale {
  const Moments* moments;
  double numel, clip;
  float* scale;
  WISP_HD void operator()() const {
    const double mean = moments->sum / numel;
    const double square = moments->squares / numel;
    const double variance = square - mean * mean;
    *scale = moments->largest;
    if (variance <= 1e-12 * square) return;  // 0 but for rounding
    const double bound = clip * sqrt(variance);
    if (bound < static_cast<double>(*scale)) *scale = static_cast<float>(bound);
  }
};

class TerngradCode final : public ScaledIntegers {
 public:
  TerngradCode(ScaledIntegerOptions options, double clip)
      : ScaledIntegers(std::move(options)), clip_(clip) {}

 protected:
  void own_scale(const Stream& stream, const Source& source, const Field& field,
                 std::byte* partials, float* scale) const override {
    if (clip_ == 0.0) return ScaledIntegers::own_scale(stream, source, field, partials, scale);
    auto* moments = reinterpret_cast<Moments*>(partials);
    Moments* partial = moments + 1;
    for (const Slice& slice : field.slices)
      parallel_reduce(stream, (slice.numel + MomentsOf::kRun - 1) / MomentsOf::kRun,
                      MomentsOf{source, slice.offset, slice.numel}, partial++);
    run_once(stream, CombineSlices<MomentsOf>{moments + 1, partial - moments - 1, {}, moments});
    run_once(stream, ClippedScale{moments, static_cast<double>(field.numel), clip_, scale});
  }
  int64_t partial_bytes(std::span<const Field> fields) const override {
    size_t slices = 0;
    for (const Field& field : fields) slices = std::max(slices, field.slices.size());
    return static_cast<int64_t>(sizeof(Moments) * (1 + slices));
  }

 private:
  double clip_;
};

const CodeRegistration registration(
    "terngrad", "ternary gradients, rounded at random (Wen et al. 2017)",
    [](Config& config, const CompressorSetup& setup) -> std::unique_ptr<Code> {
      ScaledIntegerOptions options{.name = "terngrad", .levels = 1};
      options.bind_scaler(config, setup);
      double clip = 2.5;
      config.bind("compression.clip", clip,
                  "terngrad: gradients are clipped to this many of their standard deviations; 0: "
                  "not at all");
      WISP_CHECK(clip >= 0.0, config.where("compression.clip"), ": compression.clip is ", clip,
                 ", expected 0 or more");
      return std::make_unique<TerngradCode>(std::move(options), clip);
    },
    Feedback::none);

}  // namespace
}  // namespace wisp
