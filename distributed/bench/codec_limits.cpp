#include "distributed/bench/codec_limits.h"

#include <algorithm>
#include <vector>

#include "core/backend.h"
#include "core/loops/parallel.h"
#include "core/products.h"
#include "core/real_fft.h"
#include "distributed/bench/stream_time.h"

namespace wisp {
namespace {

constexpr int kRuns = 5;
constexpr int kPayloads = 4;
constexpr int kMostArrays = 3;

struct Read {
  using Value = float;
  const float* from;
  WISP_HD float identity() const { return 0.0f; }
  WISP_HD float map(int64_t i) const { return from[i]; }
  WISP_HD float combine(float a, float b) const { return a + b; }
};

struct Write {
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] = 1.0f; }
};

template <int kArrays>
struct ReadAndUpdate {
  const float* gradient;
  float* state[kArrays];
  WISP_HD void operator()(int64_t i) const {
    for (int a = 0; a < kArrays; ++a) state[a][i] += gradient[i];
  }
};

struct Nothing {
  void operator()() const {}
};

/// Median time of work(), each time after prepare().
template <class Work, class Prepare = Nothing>
double median_ms(const Stream& stream, const Work& work, const Prepare& prepare = {}) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    prepare();
    times.push_back(time_ms(stream, work));
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

/// Number of per-element arrays that a worker reads and writes when it encodes; one worker owns
/// everything.
int arrays_of(Rehearsal& rehearsal) {
  const Compressor& compressor = rehearsal.compressor(0);
  const Traits traits = compressor.traits();
  int arrays = traits.result == UpdateRule::update && traits.momentum == Home::compressor ? 1 : 0;
  for (const StateSpec& spec : compressor.state(rehearsal.unit(0).spec, rehearsal.workers()))
    arrays += spec.per_element && spec.sharing == Sharing::per_rank;
  return std::min(arrays, kMostArrays);
}

CodecLimits plain_loops(Rehearsal& rehearsal, int64_t payload_bytes) {
  const int64_t n = rehearsal.unit(0).spec.numel, words = (payload_bytes + 3) / 4;
  const Context& context = rehearsal.context();
  const Stream& stream = context.stream;
  const Tensor gradient = context.zeros({n}, DType::f32);
  const Tensor payload = context.zeros({words}, DType::f32);
  const Tensor sum = context.zeros({1}, DType::f32);
  const int arrays = arrays_of(rehearsal);
  std::vector<Tensor> memory;
  float* state[kMostArrays] = {};
  for (int a = 0; a < arrays; ++a)
    state[a] = memory.emplace_back(context.zeros({n}, DType::f32)).data<float>();
  auto* g = gradient.data<float>();
  auto* p = payload.data<float>();
  auto* total = sum.data<float>();
  const auto draw = [&] { parallel_for(stream, n, Write{g}); };  // drawn as before an encode
  const double read_gradient = median_ms(
      stream, [&] { parallel_reduce(stream, n, Read{g}, total); }, draw);
  const double pass = median_ms(
      stream,
      [&] {
        if (arrays == 0) parallel_reduce(stream, n, Read{g}, total);
        if (arrays == 1) parallel_for(stream, n, ReadAndUpdate<1>{g, {state[0]}});
        if (arrays == 2) parallel_for(stream, n, ReadAndUpdate<2>{g, {state[0], state[1]}});
        if (arrays == 3)
          parallel_for(stream, n, ReadAndUpdate<3>{g, {state[0], state[1], state[2]}});
      },
      draw);
  const double write = median_ms(stream, [&] { parallel_for(stream, words, Write{p}); });
  const double read = median_ms(stream, [&] { parallel_reduce(stream, words, Read{p}, total); });
  const double fill = median_ms(stream, [&] { parallel_for(stream, n, Write{g}); });
  const double add = median_ms(stream, [&] { parallel_for(stream, n, ReadAndUpdate<1>{g, {g}}); });
  const Traits traits = rehearsal.compressor(0).traits();
  const int only_read = (traits.squares ? 1 : 0) + (traits.result == UpdateRule::momentum ? 1 : 0);
  const bool everywhere = 16 * payload_bytes > n;  // otherwise a payload touches few elements
  return {pass + write + only_read * read_gradient, fill + read,
          fill + kPayloads * read + (everywhere ? (kPayloads - 1) * add : 0.0)};
}

CodecLimits transforms(Rehearsal& rehearsal) {
  Context& context = rehearsal.context();
  const int64_t size = fast_fft_size(rehearsal.unit(0).spec.numel);
  const Tensor x = context.zeros({size}, DType::f32);
  const Tensor spectrum = context.zeros({size + 2}, DType::f32);
  RealFft& fft = context.backend.fft();
  const double forward = median_ms(context.stream, [&] {
    fft.forward(context.stream, size, x.data<float>(), spectrum.data<float>());
  });
  const double inverse = median_ms(context.stream, [&] {
    fft.inverse(context.stream, size, spectrum.data<float>(), x.data<float>());
  });
  return {forward, inverse, inverse};
}

/// Times of M Qᵀ and P M, of the approximation Pᵀ Q of M, and of their difference; all factors have
/// `rank` rows.
struct ProductTimes {
  double to_p, to_q, approximation, difference;
};

ProductTimes products(Rehearsal& rehearsal, int64_t rank) {
  Context& context = rehearsal.context();
  const Field& field = rehearsal.unit(0).spec.fields[0];
  const int64_t rows = field.rows, columns = field.numel / field.rows;
  const Tensor m = context.zeros({rows, columns}, DType::f32);
  const Tensor p = context.zeros({rank, rows}, DType::f32);
  const Tensor q = context.zeros({rank, columns}, DType::f32);
  const auto gemm = [&](const GemmSpec& spec, const Tensor& a, const Tensor& b, const Tensor& c,
                        bool accumulate) {
    return median_ms(context.stream, [&] {
      context.backend.products().gemm(context.stream, spec, a, b, {c, accumulate});
    });
  };
  const GemmSpec back{.m = rows, .n = columns, .k = rank, .transpose_a = true};
  return {gemm({.m = rank, .n = rows, .k = columns, .transpose_b = true}, q, m, p, false),
          gemm({.m = rank, .n = columns, .k = rows}, p, m, q, false), gemm(back, p, q, m, false),
          gemm(back, p, q, m, true)};
}

int64_t rank_of(Rehearsal& rehearsal) { return rehearsal.state(0, "q").shape()[0]; }

}  // namespace

CodecLimits measure_codec_limits(const std::string& method, Rehearsal& rehearsal,
                                 int64_t payload_bytes) {
  if (method == "fft") return transforms(rehearsal);
  if (method == "powersgd") {
    const ProductTimes of = products(rehearsal, rank_of(rehearsal));
    return {of.to_p + of.to_q, of.approximation, of.approximation};
  }
  if (method == "acpsgd") {
    const ProductTimes of = products(rehearsal, rank_of(rehearsal));
    return {of.to_p + of.difference, of.approximation, of.approximation};
  }
  return plain_loops(rehearsal, payload_bytes);
}

}  // namespace wisp
