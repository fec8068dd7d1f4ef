#include "compression/codec_bench.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "core/backend.h"
#include "core/clock.h"
#include "core/norm.h"
#include "core/parallel.h"
#include "core/random.h"

namespace wisp {
namespace {

/// Nearly normal: the sum of eight uniforms, mean 0, variance 1.
struct Draw {
  Philox philox;
  float* gradient;
  WISP_HD void operator()(int64_t i) const {
    const Philox::Block block = philox.block(static_cast<uint64_t>(i));
    uint32_t sum = 0;
    for (int word = 0; word < 4; ++word)
      sum += (block.word[word] & 0xffffu) + (block.word[word] >> 16);
    gradient[i] = (static_cast<float>(sum) - 262140.0f) * 1.8688e-5f;  // sqrt(12 / 8) / 2^16
  }
};

/// Squares of the difference and of the original, summed.
struct ErrorOf {
  struct Value {
    double difference, original;
  };
  const float* decoded;
  const float* gradient;
  WISP_HD Value identity() const { return {0.0, 0.0}; }
  WISP_HD Value map(int64_t i) const {
    const double g = gradient[i];
    const double d = decoded[i] - g;
    return {d * d, g * g};
  }
  WISP_HD Value combine(Value a, Value b) const {
    return {a.difference + b.difference, a.original + b.original};
  }
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

/// A worker's unit of one field, with a compressor on it.
class Bench {
 public:
  Bench(Context& context, Compressor& compressor, int64_t numel, double ratio)
      : context_(context), compressor_(compressor) {
    fields_ = {{{{0, numel}}, numel, 1}};
    unit_.spec = {fields_, numel};
    info_.ratio = ratio;
    WISP_CHECK(compressor.rounds(unit_.spec, info_) == 1, "bench codec: the method speaks in ",
               compressor.rounds(unit_.spec, info_), " rounds, which a single worker cannot time");
    message_ = compressor.message(unit_.spec, info_, 0);
    const auto zeroed = [&] {
      Tensor arena = context.empty({numel}, DType::f32);
      fill_zero(context.stream, arena);
      return arena;
    };
    unit_.gradient = zeroed();
    unit_.weight = zeroed();
    unit_.momentum = zeroed();
    for (const StateSpec& spec : compressor.state(unit_.spec, 1)) {
      WISP_CHECK(spec.per_element, "bench codec: state ", spec.name, " is not per element");
      state_.tensors.push_back(zeroed());
    }
    unit_.state = &state_;
    scratch_ = context.empty({compressor.scratch_bytes(unit_.spec, info_)}, DType::u8);
    unit_.scratch = scratch_.raw();
    out_ = context.empty({message_.bytes}, DType::u8);
  }

  void draw() {
    parallel_for(context_.stream, unit_.spec.numel,
                 Draw{Philox(1, static_cast<uint64_t>(++info_.step), 0), gradient()});
    context_.stream.synchronize();
  }

  double encode() {
    const double begin = now_us();
    used_ = message_.bytes;
    const Outlet outlet{out_.raw(), message_.bytes, message_.variable ? &used_ : nullptr};
    compressor_.encode(context_, unit_, info_, 0, {&outlet, 1});
    context_.stream.synchronize();
    return (now_us() - begin) * 1e-3;
  }

  double decode() {
    const double begin = now_us();
    const Payload payload{0, out_.raw(), used_};
    compressor_.decode(context_, unit_, info_, 0, {&payload, 1});
    context_.stream.synchronize();
    return (now_us() - begin) * 1e-3;
  }

  /// A round that compares what comes out with what went in.
  double error() {
    draw();
    Tensor original = context_.empty({unit_.spec.numel}, DType::f32);
    std::copy_n(gradient(), unit_.spec.numel, original.data<float>());
    encode();
    decode();
    ErrorOf::Value sums{};
    parallel_reduce(context_.stream, unit_.spec.numel, ErrorOf{gradient(), original.data<float>()},
                    &sums);
    context_.stream.synchronize();
    return std::sqrt(sums.difference / sums.original);
  }

  int64_t payload_bytes() const { return used_; }

 private:
  float* gradient() { return unit_.gradient.data<float>(); }

  Context& context_;
  Compressor& compressor_;
  std::vector<Field> fields_;
  Unit unit_;
  State state_;
  StepInfo info_;
  Message message_;
  Tensor scratch_, out_;
  int64_t used_ = 0;
};

}  // namespace

CodecResult bench_codec(const std::string& method, Config& config, int64_t numel, double ratio,
                        int threads, double seconds) {
  WISP_CHECK(numel > 0, "bench codec: numel is ", numel, ", expected more than 0");
  WISP_CHECK(0.0 < ratio && ratio <= 1.0, "bench codec: ratio is ", ratio,
             ", expected 0 < ratio <= 1");
  WISP_CHECK(threads > 0, "bench codec: threads is ", threads, ", expected more than 0");
  const auto compressor = CompressorRegistry::instance()
                              .find("compression method", method)
                              .make(config, {.momentum = 0.9});
  WISP_CHECK(compressor, "bench codec: method ", method, " encodes nothing");

  const int threads_before = omp_get_max_threads();
  omp_set_num_threads(threads);
  MemoryPool pool;
  const Stream stream = Stream::immediate();
  const auto backend = make_backend(pool, stream);
  Context context{.stream = stream, .backend = *backend, .pool = pool, .threads = threads};
  Bench bench(context, *compressor, numel, ratio);
  CodecResult result{method, numel, ratio, threads};
  result.rel_error = bench.error();
  std::vector<double> encode_ms, decode_ms;
  const double end = now_us() + seconds * 1e6;
  while (encode_ms.size() < 3 || now_us() < end) {
    bench.draw();
    encode_ms.push_back(bench.encode());
    decode_ms.push_back(bench.decode());
  }
  omp_set_num_threads(threads_before);
  result.encode_ms = median(std::move(encode_ms));
  result.decode_ms = median(std::move(decode_ms));
  result.payload_bytes = bench.payload_bytes();
  return result;
}

}  // namespace wisp
