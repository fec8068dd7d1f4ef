#include "distributed/bench/codec_bench.h"

#include <algorithm>
#include <cmath>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/copy.h"
#include "core/loops/parallel.h"
#include "core/random.h"
#include "distributed/bench/codec_limits.h"

namespace wisp {
namespace {

constexpr int kWorkers = 4;
constexpr int kBiasDraws = 16;
constexpr int64_t kBiasNumel = 1'000'000;

struct Draw {
  Philox philox;
  float* values;
  WISP_HD void operator()(int64_t i) const {
    values[i] = philox.nearly_normal(static_cast<uint64_t>(i));
  }
};

/// Clears a random share of whole rows.
struct ClearRows {
  Philox philox;
  float share;
  int64_t columns;
  float* values;
  WISP_HD void operator()(int64_t row) const {
    if (philox.uniform(static_cast<uint64_t>(row)) >= share) return;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) values[i] = 0.0f;
  }
};

struct AddTo {
  const float* from;
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] += from[i]; }
};

/// Sums that compare a result with the expected one.
struct Likeness {
  struct Value {
    double difference, wanted, got, product;
  };
  const float* result;
  const float* sum;
  WISP_HD Value identity() const { return {0.0, 0.0, 0.0, 0.0}; }
  WISP_HD Value map(int64_t i) const {
    const double got = result[i], wanted = sum[i];
    return {(got - wanted) * (got - wanted), wanted * wanted, got * got, got * wanted};
  }
  WISP_HD Value combine(Value a, Value b) const {
    return {a.difference + b.difference, a.wanted + b.wanted, a.got + b.got, a.product + b.product};
  }
};

/// Compares host tensors; this is not timed.
Likeness::Value likeness(const Tensor& result, const Tensor& sum) {
  Likeness::Value value{};
  parallel_reduce(Stream::immediate(), sum.numel(),
                  Likeness{result.data<float>(), sum.data<float>()}, &value);
  return value;
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Field field_of(int64_t numel) {
  auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(numel)));
  while (numel % rows != 0) --rows;
  return {.slices = {{0, numel}}, .numel = numel, .key = 1, .rows = rows};
}

/// A rehearsal with drawn gradients.
class Bench {
 public:
  using Make = std::function<std::unique_ptr<Compressor>(int)>;

  Bench(const Make& make, int workers, const CodecBenchOptions& options)
      : rehearsal_(
            workers, {field_of(options.numel)}, [&] { return make(workers); }, true,
            options.device),
        numel_(options.numel),
        zero_rows_(static_cast<float>(options.zero_rows)) {
    info_.ratio = options.ratio;
    info_.applied = int64_t{1} << 40;  // after any warm-up
    info_.lr = info_.last_lr = 0.1;
    if (rehearsal_.compressor(0).traits().result != UpdateRule::momentum) return;
    for (int rank = 0; rank < workers; ++rank)  // a method that leaves a momentum starts from one
      draw(Draw{Philox(3, 0, 0), rehearsal_.momentum(rank)});
  }

  /// Draws the gradients of `step`, then runs the method's step with the random numbers of `seed`.
  void step(int64_t step, uint64_t seed = 1) {
    info_.step = step;
    info_.seed = seed;
    for (int rank = 0; rank < rehearsal_.workers(); ++rank)
      draw(Draw{Philox(1, static_cast<uint64_t>(step), static_cast<uint64_t>(rank)),
                rehearsal_.gradient(rank)});
    rehearsal_.step(info_);
  }

  /// The sum of the workers' gradients of `step`, in host memory.
  Tensor sum(int64_t step) {
    const Context& context = rehearsal_.context();
    const Tensor sum = context.zeros({numel_}, DType::f32);
    const Tensor one = context.empty({numel_}, DType::f32);
    for (int rank = 0; rank < rehearsal_.workers(); ++rank) {
      draw(Draw{Philox(1, static_cast<uint64_t>(step), static_cast<uint64_t>(rank)),
                one.data<float>()});
      parallel_for(stream(), numel_, AddTo{one.data<float>(), sum.data<float>()});
    }
    return fetch(stream(), sum);
  }

  /// Worker 0's result of the last step, in host memory.
  Tensor result() { return fetch(stream(), rehearsal_.unit(0).gradient); }

  Rehearsal& rehearsal() { return rehearsal_; }

 private:
  const Stream& stream() { return rehearsal_.context().stream; }
  void draw(const Draw& values) {
    parallel_for(stream(), numel_, values);
    if (zero_rows_ == 0.0f) return;
    const int64_t rows = field_of(numel_).rows;
    parallel_for(stream(), rows,
                 ClearRows{Philox(2, 0, 0), zero_rows_, numel_ / rows, values.values});
  }

  Rehearsal rehearsal_;
  int64_t numel_;
  float zero_rows_;
  StepInfo info_;
};

void measure_bias(const std::function<std::unique_ptr<Compressor>(int)>& make,
                  CodecResult& result) {
  CodecBenchOptions options = result.options;
  options.numel = std::min(options.numel, kBiasNumel);
  const int64_t numel = options.numel;
  const Tensor mean({numel}, DType::f32);  // in host memory
  for (int draw = 0; draw < kBiasDraws; ++draw) {
    Bench bench(make, kWorkers, options);
    bench.step(0, static_cast<uint64_t>(draw));
    parallel_for(Stream::immediate(), numel,
                 AddTo{bench.result().data<float>(), mean.data<float>()});
    if (draw + 1 < kBiasDraws) continue;
    for (int64_t i = 0; i < numel; ++i) mean.data<float>()[i] /= kBiasDraws;
    const Likeness::Value value = likeness(mean, bench.sum(0));
    result.bias = std::sqrt(value.difference / value.wanted);
  }
}

void check(const CodecBenchOptions& options) {
  WISP_CHECK(options.numel > 0, "bench codec: numel is ", options.numel, ", expected more than 0");
  WISP_CHECK(0.0 < options.ratio && options.ratio <= 1.0, "bench codec: ratio is ", options.ratio,
             ", expected 0 < ratio <= 1");
  WISP_CHECK(0.0 <= options.zero_rows && options.zero_rows < 1.0, "bench codec: zero_rows is ",
             options.zero_rows, ", expected 0 <= zero_rows < 1");
  require_omp_threads(options.threads, "bench codec: threads");
}

void measure(const std::function<std::unique_ptr<Compressor>(int)>& make, CodecResult& result) {
  const CodecBenchOptions& options = result.options;
  std::vector<double> encode, decode, decode4;
  {
    Bench four(make, kWorkers, options);
    four.step(0);
    Rehearsal& rehearsal = four.rehearsal();
    result.rounds = rehearsal.rounds();
    for (int round = 0; round < result.rounds; ++round)
      result.payload_bytes += rehearsal.sent_bytes(0, round);
    for (const Tensor& tensor : rehearsal.unit(0).state->tensors)
      result.state_bytes += tensor.bytes();
    result.scratch_bytes = rehearsal.scratch_bytes(0);
    const Likeness::Value value = likeness(four.result(), four.sum(0));
    result.rel_error = std::sqrt(value.difference / value.wanted);
    if (value.got > 0.0) result.cosine = value.product / std::sqrt(value.wanted * value.got);
    const double end = now_us() + options.seconds * 0.6e6;
    for (int64_t step = 1; decode4.size() < 3 || now_us() < end; ++step) {
      four.step(step);
      decode4.push_back(rehearsal.decode_ms(0));
    }
  }
  Bench one(make, 1, options);
  one.step(0);
  const double end = now_us() + options.seconds * 0.4e6;
  for (int64_t step = 1; encode.size() < 3 || now_us() < end; ++step) {
    one.step(step);
    encode.push_back(one.rehearsal().encode_ms(0));
    decode.push_back(one.rehearsal().decode_ms(0));
  }
  const CodecLimits limits =
      measure_codec_limits(result.method, one.rehearsal(), result.payload_bytes);
  result.encode_limit_ms = limits.encode;
  result.decode_limit_ms = limits.decode;
  result.decode4_limit_ms = limits.decode4;
  result.encode_ms = median(std::move(encode));
  result.decode_ms = median(std::move(decode));
  result.decode4_ms = median(std::move(decode4));
}

}  // namespace

CodecResult bench_codec(const std::string& method,
                        const std::function<std::unique_ptr<Compressor>(int)>& make,
                        const CodecBenchOptions& options) {
  check(options);
  WISP_CHECK(make(1), "bench codec: method ", method, " encodes nothing");
  CodecResult result;
  result.method = method;
  result.options = options;
  const OmpThreads threads(options.threads);
  measure_bias(make, result);
  measure(make, result);
  return result;
}

}  // namespace wisp
