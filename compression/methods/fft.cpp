// FFT sparsification: frequencies of the gradient are dropped instead of elements. Per worker and
// field, g of d elements, padded with zeros to n, the next even 2^a 3^b 5^c:
//   (1) X = F g, its n/2 + 1 coefficients                 (2) keep the (1 - theta) of largest |X_k|
//   (3) send a bitmap of those kept, and their parts as N-bit range floats (range_float.h)
//   every worker: (4) the decoded spectra added, (5) one inverse transform: F^-1 Σ X^
// Theta falls, theta_e = theta · decay^e in epoch e: with a theta that goes to 0 the method
// converges (the paper's diminishing theta).
// Source: Wang et al. 2020, "FFT-based Gradient Sparsification for the Distributed Training of Deep
// Neural Networks". Only its abstract was found; (1) to (5), theta = 0.85, N = 10 and the absence
// of error feedback are a reconstruction from what is told of it. Ours: the form of theta's fall;
// exact selection; a range fitted to each field in each step, with 64 octaves below its largest
// number unless told otherwise; error feedback as an option, of what was sent, transformed back.
// Spectra are scaled by 2^-⌈log2 n⌉, so that no sum of finite numbers is infinite.
#include <bit>
#include <cmath>

#include "compression/cursor.h"
#include "compression/error_feedback.h"
#include "compression/slices.h"
#include "compression/sparse/select.h"
#include "compression/sparse/spectrum_wire.h"
#include "core/backend.h"

namespace wisp {
namespace {

struct Gather {
  Source source;
  int64_t offset;
  float scale;
  float* x;
  WISP_HD void operator()(int64_t i) const { x[i] = scale * source.take(offset + i); }
};

struct Clear {
  float* x;
  WISP_HD void operator()(int64_t i) const { x[i] = 0.0f; }
};

struct Sent {
  Source source;
  int64_t offset;
  float scale;
  const float* x;
  WISP_HD void operator()(int64_t i) const { source.sent(offset + i, scale * x[i]); }
};

struct Leave {
  const float* x;
  float scale;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t i) const { into[i] = (add ? into[i] : 0.0f) + scale * x[i]; }
};

/// A field's transform, and what of it travels.
struct Transform {
  int64_t size;  // n
  SpectrumWire wire;

  Transform(int64_t n, double theta, int bits, int mantissa)
      : size(n), wire(n / 2 + 1, kept_count(1.0 - theta, n / 2 + 1), bits, mantissa) {}
  float forward_scale() const { return static_cast<float>(1.0 / unit()); }
  float inverse_scale() const { return static_cast<float>(unit() / static_cast<double>(size)); }

 private:
  double unit() const { return static_cast<double>(std::bit_ceil(static_cast<uint64_t>(size))); }
};

/// The parts of scratch while a field is transformed.
struct Scratch {
  float* spectrum;
  std::byte* wire;  // its scratch while there are no numbers
  float* x;         // the numbers, in its place

  Scratch(Cursor& cursor, const Transform& t)
      : spectrum(cursor.take<float>(2 * t.wire.coefficients())),
        wire(cursor.take<std::byte>(std::max(4 * t.size, t.wire.scratch_bytes()))),
        x(reinterpret_cast<float*>(wire)) {}
};

struct Options {
  double theta = 0.85;
  double theta_decay = 1.0;
  int bits = 10;
  int mantissa = -1;
};

class FftCode final : public Code {
 public:
  explicit FftCode(const Options& options) : options_(options) {}

  Traits traits() const override { return {.represents_zero = false}; }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return {.kind = Collective::all_gather, .bytes = bytes(spec, info)};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    int64_t most = 0;
    for (const Field& field : spec.fields)
      most = std::max(most, layout_bytes<Scratch>(transform_of(field, info)));
    return most;
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* memory) const override {
    WISP_CHECK(outlet.capacity >= bytes(spec, info), "fft: the unit needs ", bytes(spec, info),
               " bytes, the outlet has ", outlet.capacity);
    const Stream& stream = context.stream;
    const Payload payload{info.rank, outlet.data, bytes(spec, info)};
    int64_t at = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Field& field = spec.fields[f];
      const Transform t = transform_of(field, info);
      const auto scratch = lay_out<Scratch>(memory, t);
      each_slice(field, [&](const Slice& slice, int64_t position) {
        parallel_for(stream, slice.numel,
                     Gather{source, slice.offset, t.forward_scale(), scratch.x + position});
      });
      parallel_for(stream, t.size - field.numel, Clear{scratch.x + field.numel});
      context.backend.fft().forward(stream, t.size, scratch.x, scratch.spectrum);  // (1)
      const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
      t.wire.pack(stream, scratch.spectrum, random, outlet.data + at, scratch.wire);  // (2), (3)
      if (source.kept) {
        add_and_invert(context, {&payload, 1}, at, f, t, scratch);
        each_slice(field, [&](const Slice& slice, int64_t position) {
          parallel_for(stream, slice.numel,
                       Sent{source, slice.offset, t.inverse_scale(), scratch.x + position});
        });
      }
      at += t.wire.bytes();
    }
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override {
    decode_weighted(context, {&payload, 1}, weight, add, spec, info, into, scratch);
  }
  void decode_sum(Context& context, std::span<const Payload> payloads, bool add,
                  const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                  std::byte* scratch) const override {
    decode_weighted(context, payloads, 1.0f, add, spec, info, into, scratch);
  }

 private:
  Transform transform_of(const Field& field, const StepInfo& info) const {
    const double theta = options_.theta * std::pow(options_.theta_decay, std::floor(info.epoch));
    return {fast_fft_size(field.numel), theta, options_.bits, options_.mantissa};
  }
  int64_t bytes(const UnitSpec& spec, const StepInfo& info) const {
    int64_t sum = 0;
    for (const Field& field : spec.fields) sum += transform_of(field, info).wire.bytes();
    return sum;
  }

  /// (4), (5): the sum of a field's spectra, `at` bytes into each payload, and its numbers.
  static void add_and_invert(Context& context, std::span<const Payload> payloads, int64_t at,
                             size_t field, const Transform& t, const Scratch& scratch) {
    parallel_for(context.stream, 2 * t.wire.coefficients(), Clear{scratch.spectrum});
    for (const Payload& payload : payloads)
      t.wire.add(context.stream, payload.data + at, payload.complaints(),
                 static_cast<int64_t>(field), scratch.spectrum, scratch.wire);
    context.backend.fft().inverse(context.stream, t.size, scratch.spectrum, scratch.x);
  }

  void decode_weighted(Context& context, std::span<const Payload> payloads, float weight, bool add,
                       const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                       std::byte* memory) const {
    for (const Payload& payload : payloads) {
      WISP_CHECK(payload.bytes == bytes(spec, info), "fft: the payload of rank ", payload.from,
                 " has ", payload.bytes, " bytes, expected ", bytes(spec, info));
    }
    int64_t at = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Transform t = transform_of(spec.fields[f], info);
      const auto scratch = lay_out<Scratch>(memory, t);
      add_and_invert(context, payloads, at, f, t, scratch);
      each_slice(spec.fields[f], [&](const Slice& slice, int64_t position) {
        parallel_for(context.stream, slice.numel,
                     Leave{scratch.x + position, weight * t.inverse_scale(), add,
                           into.data<float>() + slice.offset});
      });
      at += t.wire.bytes();
    }
  }

  Options options_;
};

std::unique_ptr<Code> make_fft(Config& config, const CompressorSetup&) {
  Options options;
  config.bind("compression.theta", options.theta,
              "share of a field's frequencies that fft drops, in [0, 1)");
  config.bind("compression.theta_decay", options.theta_decay,
              "theta's factor from epoch to epoch, in (0, 1]; below 1, the diminishing theta");
  config.bind("compression.range_bits", options.bits, "bits of a range float, 2 to 32");
  config.bind("compression.range_mantissa", options.mantissa,
              "of them mantissa, 0 to 23; -1: as many as leave 64 octaves (range_bits - 7)");
  const auto check = [&](bool good, const char* key, auto value, const char* expected) {
    WISP_CHECK(good, config.where(key), ": ", key, " is ", value, ", expected ", expected);
  };
  check(0.0 <= options.theta && options.theta < 1.0, "compression.theta", options.theta,
        "0 <= theta < 1");
  check(0.0 < options.theta_decay && options.theta_decay <= 1.0, "compression.theta_decay",
        options.theta_decay, "0 < theta_decay <= 1");
  check(2 <= options.bits && options.bits <= 32, "compression.range_bits", options.bits, "2 to 32");
  check(-1 <= options.mantissa && options.mantissa <= 23, "compression.range_mantissa",
        options.mantissa, "-1 to 23");
  if (options.mantissa < 0) options.mantissa = std::clamp(options.bits - 7, 0, 23);
  return std::make_unique<FftCode>(options);
}

const CodeRegistration registration(
    "fft", "the largest frequencies of the gradient, as range floats (Wang et al. 2020)", make_fft,
    Feedback::ef);

}  // namespace
}  // namespace wisp
