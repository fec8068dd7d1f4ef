// FFT sparsification: drops frequencies of the gradient instead of elements. Per worker and field,
// with g of d elements, padded with zeros to n, the next even 2^a 3^b 5^c:
//   (1) X = F g, its n/2 + 1 coefficients                 (2) keep the (1 - theta) of largest |X_k|
//   (3) send a bitmap of those kept, and their parts as N-bit range floats (range_float.h)
//   every worker: (4) the decoded spectra added, (5) one inverse transform: F^-1 Σ X^
// Theta falls: theta_e = theta · decay^e in epoch e. With a theta that goes to 0, the method
// converges (the paper's diminishing theta). Source: Wang et al. 2020, "FFT-based Gradient
// Sparsification for the Distributed Training of Deep Neural Networks". Only its abstract was
// found; (1) to (5), theta = 0.85, N = 10 and the absence of error feedback are a reconstruction
// from descriptions by others. Ours: the form of theta's fall; exact selection; optional error
// feedback with the inverse transform of the sent spectrum. Also ours is a range fitted to each
// field in each step, with 64 octaves below its largest number by default. Spectra are scaled by
// 2^-⌈log2 n⌉, so that no sum of finite numbers is infinite.
#include <bit>
#include <cmath>

#include "compression/cursor.h"
#include "compression/methods/methods.h"
#include "compression/slices.h"
#include "compression/sparse/select.h"
#include "compression/sparse/spectrum_wire.h"
#include "core/backend.h"
#include "core/loops/parallel_rows.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

constexpr int64_t kMostFields = 64;  // fields transformed and packed together

/// The power of two that scales the spectra of transforms of this length.
double unit_of(int64_t size) {
  return static_cast<double>(std::bit_ceil(static_cast<uint64_t>(size)));
}
double forward_scale(int64_t size) { return 1.0 / unit_of(size); }
double inverse_scale(int64_t size) { return unit_of(size) / static_cast<double>(size); }

/// Several fields of a unit, one behind the other in scratch and payload.
struct Group {
  int64_t fields = 0;
  int64_t bytes = 0;         // size of their payload
  int64_t numbers = 0;       // size of their transforms
  int64_t coefficients = 0;  // size of their spectra
  const Field* field[kMostFields];
  int64_t size[kMostFields];  // size of each transform
  FieldSpectrum spectrum[kMostFields];

  Spectra spectra() const { return {spectrum, static_cast<size_t>(fields)}; }
  /// visit(i, number, coefficient) for each field; `number` and `coefficient` are the indices of
  /// its first in the group.
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t number = 0, coefficient = 0;
    for (int64_t i = 0; i < fields; ++i) {
      visit(i, number, coefficient);
      number += size[i];
      coefficient += spectrum[i].wire.coefficients;
    }
  }
};

/// Scratch for one group.
struct FftScratch {
  float* spectra;
  std::byte* wire;  // scratch of the wire, used while there are no numbers
  float* x;         // the numbers, in the same place

  FftScratch(Cursor& cursor, const Group& group)
      : spectra(cursor.take<float>(2 * group.coefficients)),
        wire(cursor.take<std::byte>(
            std::max(4 * group.numbers, spectra_scratch_bytes(group.spectra())))),
        x(reinterpret_cast<float*>(wire)) {}
};

/// A slice in the arena, or the zeros behind a field, for kernels. Of zeros, begin and end are
/// field positions, not arena indices.
struct PieceRow : RangeRow {
  int64_t x;      // index of its first among the numbers
  double scale;   // holds an f32
  int64_t zeros;  // 1: zeros behind the field, else 0; int64_t, because a row has no padding

  /// body(arena index, index among the numbers) for each element of an item.
  template <class Body>
  WISP_HD void each(const Team& team, int64_t item, const Body& body) const {
    const int64_t at = from(item), to = x + at - begin;
    team.each(count(item), [&, at, to](int64_t i) { body(at + i, to + i); });
  }
};

struct Gather {
  struct Shared {};
  Source source;
  float* x;
  RowTable<PieceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PieceRow row = table.row_of(item);
    const auto scale = static_cast<float>(row.scale);
    if (row.zeros != 0) {
      row.each(team, item, [&](int64_t, int64_t to) { x[to] = 0.0f; });
    } else {
      row.each(team, item, [&](int64_t i, int64_t to) { x[to] = scale * source.take(i); });
    }
  }
};

struct Sent {
  struct Shared {};
  Source source;
  const float* x;
  RowTable<PieceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PieceRow row = table.row_of(item);
    const auto scale = static_cast<float>(row.scale);
    row.each(team, item, [&](int64_t i, int64_t from) { source.sent(i, scale * x[from]); });
  }
};

struct Leave {
  struct Shared {};
  const float* x;
  float weight;
  bool add;
  float* arena;
  RowTable<PieceRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const PieceRow row = table.row_of(item);
    const float scale = weight * static_cast<float>(row.scale);
    row.each(team, item, [&](int64_t i, int64_t from) {
      arena[i] = (add ? arena[i] : 0.0f) + scale * x[from];
    });
  }
};

class FftCode final : public Code {
 public:
  explicit FftCode(const FftOptions& options) : options_(options) {}

  Traits traits() const override { return {.represents_zero = false}; }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return {.kind = Collective::all_gather, .bytes = bytes(spec, info)};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    int64_t most = 0;
    each_group(spec, info, [&](const Group& group, int64_t) {
      most = std::max(most, layout_bytes<FftScratch>(group));
    });
    return most;
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* memory) const override {
    outlet.expect("fft", bytes(spec, info));
    const Stream& stream = context.stream;
    const Payload payload{info.rank, outlet.data, bytes(spec, info)};
    each_group(spec, info, [&](const Group& group, int64_t at) {
      const auto scratch = lay_out<FftScratch>(memory, group);
      over_pieces(stream, group, true, Gather{source, scratch.x});
      group.each([&](int64_t i, int64_t number, int64_t coefficient) {  // step (1)
        context.backend.fft().forward(stream, group.size[i], scratch.x + number,
                                      scratch.spectra + 2 * coefficient);
      });
      pack_spectra(stream, group.spectra(), scratch.spectra, outlet.data + at, scratch.wire);
      if (!source.kept) return;
      add_and_invert(context, {&payload, 1}, at, group, scratch);
      over_pieces(stream, group, false, Sent{source, scratch.x});
    });
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
  /// The wire of a field: steps (2) and (3).
  SpectrumWire wire_of(int64_t size, const StepInfo& info) const {
    const double theta = options_.theta * std::pow(options_.theta_decay, std::floor(info.epoch));
    const int64_t coefficients = size / 2 + 1;
    return {coefficients, kept_count(1.0 - theta, coefficients), options_.bits, options_.mantissa};
  }
  int64_t bytes(const UnitSpec& spec, const StepInfo& info) const {
    return sum_of_fields(spec, [&](const Field& field) {
      return wire_of(fast_fft_size(field.numel), info).bytes();
    });
  }

  /// visit(group, at) for groups of at most kMostFields of the unit's fields; `at` counts the
  /// payload bytes before the group.
  template <class Visit>
  void each_group(const UnitSpec& spec, const StepInfo& info, const Visit& visit) const {
    Group group;
    int64_t at = 0;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      const Field& field = spec.fields[f];
      const int64_t size = fast_fft_size(field.numel);
      const FieldSpectrum spectrum{wire_of(size, info), info.random(field),
                                   static_cast<int64_t>(f)};
      group.field[group.fields] = &field;
      group.size[group.fields] = size;
      group.spectrum[group.fields] = spectrum;
      ++group.fields;
      group.bytes += spectrum.wire.bytes();
      group.numbers += size;
      group.coefficients += spectrum.wire.coefficients;
      if (group.fields < kMostFields && f + 1 < spec.fields.size()) continue;
      visit(group, at);
      at += group.bytes;
      group.fields = group.bytes = group.numbers = group.coefficients = 0;
    }
  }

  /// Runs the kernel over the group's slices; forward also over the zeros behind each field.
  template <class Kernel>
  static void over_pieces(const Stream& stream, const Group& group, bool forward,
                          const Kernel& kernel) {
    parallel_rows(stream, kernel, RangeRow::kChunk, [&](const auto& put) {
      group.each([&](int64_t i, int64_t number, int64_t) {
        const Field& field = *group.field[i];
        const int64_t size = group.size[i];
        const double scale = forward ? forward_scale(size) : inverse_scale(size);
        const auto put_piece = [&](const RangeRow& range, int64_t x, bool zeros) {
          put({range, x, static_cast<float>(scale), zeros}, range.chunks());
        };
        each_slice(field, [&](const Slice& slice, int64_t position) {
          put_piece({slice.offset, slice.offset + slice.numel}, number + position, false);
        });
        if (forward && field.numel < size)
          put_piece({field.numel, size}, number + field.numel, true);
      });
    });
  }

  /// Steps (4) and (5): adds the spectra of a group, which begins at byte `at` of each payload, and
  /// transforms them back.
  static void add_and_invert(Context& context, std::span<const Payload> payloads, int64_t at,
                             const Group& group, const FftScratch& scratch) {
    parallel_for(context.stream, 2 * group.coefficients, ZeroAll<float>{scratch.spectra});
    for (const Payload& payload : payloads)
      add_spectra(context.stream, group.spectra(), payload.data + at, payload.complaints(),
                  scratch.spectra, scratch.wire);
    group.each([&](int64_t i, int64_t number, int64_t coefficient) {
      context.backend.fft().inverse(context.stream, group.size[i],
                                    scratch.spectra + 2 * coefficient, scratch.x + number);
    });
  }

  void decode_weighted(Context& context, std::span<const Payload> payloads, float weight, bool add,
                       const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                       std::byte* memory) const {
    for (const Payload& payload : payloads) payload.expect("fft", bytes(spec, info));
    each_group(spec, info, [&](const Group& group, int64_t at) {
      const auto scratch = lay_out<FftScratch>(memory, group);
      add_and_invert(context, payloads, at, group, scratch);
      over_pieces(context.stream, group, false, Leave{scratch.x, weight, add, into.data<float>()});
    });
  }

  FftOptions options_;
};

std::unique_ptr<Code> bind_fft(Config& config, const CompressorSetup&) {
  FftOptions options;
  config.bind("compression.theta", options.theta,
              "share of a field's frequencies dropped by fft, in [0, 1)");
  config.bind("compression.theta_decay", options.theta_decay,
              "factor of theta from epoch to epoch, in (0, 1]; below 1: the diminishing theta");
  config.bind("compression.range_bits", options.bits, "bits of a range float, 2 to 32");
  config.bind("compression.range_mantissa", options.mantissa,
              "mantissa bits of a range float, 0 to 23; -1: as many as leave 64 octaves "
              "(range_bits - 7)");
  return make_fft(options, config);
}

const CodeRegistration fft_registration(
    "fft",
    "largest frequencies of the gradient, as range floats (after the abstract of Wang et al. 2020)",
    bind_fft, Feedback::ef);

}  // namespace

std::unique_ptr<Code> make_fft(FftOptions options, const Config& places) {
  places.expect(0.0 <= options.theta && options.theta < 1.0, "compression.theta", options.theta,
                "0 <= theta < 1");
  places.expect(0.0 < options.theta_decay && options.theta_decay <= 1.0, "compression.theta_decay",
                options.theta_decay, "0 < theta_decay <= 1");
  places.expect(2 <= options.bits && options.bits <= 32, "compression.range_bits", options.bits,
                "2 to 32");
  places.expect(-1 <= options.mantissa && options.mantissa <= 23, "compression.range_mantissa",
                options.mantissa, "-1 to 23");
  if (options.mantissa < 0) options.mantissa = std::clamp(options.bits - 7, 0, 23);
  return std::make_unique<FftCode>(options);
}

}  // namespace wisp
