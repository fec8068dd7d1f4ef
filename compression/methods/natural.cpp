// Natural compression: each number becomes one of the two neighbouring powers of two, at random and
// unbiased; its sign and exponent are sent. Source: Horvath et al. 2019: 2^e (1 + f), 0 <= f < 1,
// becomes 2^(e + 1) with probability f, else 2^e. The variance is at most |x|² / 8. Adding a random
// 23-bit integer to the bits of a number carries into its exponent with exactly this probability.
// Zero stays zero, denormals become 0 or 2^-126, and numbers beyond 2^127 saturate.
//   compression.bits = 9   a plane of 8-bit exponents, then a plane of signs
//   compression.bits = 8   a byte of sign and 7-bit exponent, as in GRACE (exponents 18 to 145 of a
//                          float), except that the least exponent means zero: the range is 2^-108
//                          to 2^18, smaller numbers become zero, larger ones saturate
#include "compression/methods/methods.h"
#include "compression/quantize/group.h"
#include "compression/quantize/rounding.h"
#include "compression/slices.h"

namespace wisp {
namespace {

constexpr int64_t kGroup = group::kSize;
constexpr int kOffset = 18;  // float exponent that is 0 in the 7-bit one

/// Exponents of numbers and their range.
template <int kBits>
struct Exponents {
  static constexpr uint32_t kLeast = kBits == 8 ? kOffset : 0;  // the exponent that means zero
  static constexpr uint32_t kMost = kBits == 8 ? kOffset + 127 : 254;  // 255 is infinity

  static int64_t bytes(int64_t numel) {
    return Plane<8>::bytes(numel) + (kBits == 8 ? 0 : Plane<1>::bytes(numel));
  }
  /// The exponent of a finite number, rounded up at random by 23 bits.
  WISP_HD static uint32_t exponent(float x, uint32_t random) {
    uint32_t e = ((float_bits(x) & 0x7fffffffu) + (random >> 9)) >> 23;
    e = e > kLeast ? e : kLeast;
    return (e < kMost ? e : kMost) - kLeast;
  }
  WISP_HD static float value(uint32_t exponent, uint32_t sign) {
    uint32_t e = exponent < kMost - kLeast ? exponent : kMost - kLeast;
    e = e > 0 ? e + kLeast : 0;
    return float_from_bits(sign << 31 | e << 23);
  }
};

struct Numbers {
  group::Codes exponent, sign;
};

template <int kBits>
struct EncodeNatural {
  using Shared = Numbers;
  Source source;
  Dither dither;
  int64_t offset, position, numel;
  std::byte* out;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t g, Shared& shared) const {
    group::by_kind(source, [&](const Source& kind) { encode(team, kind, g, shared); });
  }
  template <class Team>
  WISP_HD void encode(const Team& team, const Source& kind, int64_t g, Shared& shared) const {
    using Exponent = Exponents<kBits>;
    const int64_t at = g * kGroup;
    const int64_t size = group::size_at(at, numel);
    uint8_t* signs = shared.sign.code;
    group::prefetch(kind, offset + at);
    group::fill(team, size, shared.exponent.code, [&](int64_t j) {
      const float x = kind.peek(offset + at + j);
      const uint32_t exponent = Exponent::exponent(x, dither.bits(position + at + j));
      const uint32_t sign = float_bits(x) >> 31;
      kind.settle(offset + at + j, x, Exponent::value(exponent, sign));
      if constexpr (kBits == 9) signs[j] = static_cast<uint8_t>(sign);
      return static_cast<uint8_t>(kBits == 8 ? exponent | sign << 7 : exponent);
    });
    Plane<8>{out, numel}.store(team, g, shared.exponent.code);
    if constexpr (kBits == 8) return;
    if (size < kGroup) team.each(kGroup - size, [&](int64_t j) { signs[size + j] = 0; });
    Plane<1>{out + Plane<8>::bytes(numel), numel}.store(team, g, signs);
  }
};

template <int kBits>
struct DecodeNatural {
  using Shared = Numbers;
  const std::byte* in;
  int64_t numel;
  float weight;
  bool add;
  float* into;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t g, Shared& shared) const {
    const uint8_t* exponent = shared.exponent.code;
    const uint8_t* sign = shared.sign.code;
    Plane<8, const std::byte>{in, numel}.load(team, g, shared.exponent.code);
    if constexpr (kBits == 9)
      Plane<1, const std::byte>{in + Plane<8>::bytes(numel), numel}.load(team, g, shared.sign.code);
    const int64_t at = g * kGroup;
    group::give(
        team, group::size_at(at, numel),
        [&](int64_t j) {
          if constexpr (kBits == 8)
            return Exponents<kBits>::value(exponent[j] & 0x7fu, exponent[j] >> 7);
          return Exponents<kBits>::value(exponent[j], sign[j]);
        },
        weight, add, into + at);
  }
};

template <int kBits>
class NaturalCode final : public Code {
 public:
  Traits traits() const override { return {.dense_1d = false}; }
  std::optional<double> variance(const UnitSpec&) const override { return 0.125; }
  Message message(const UnitSpec& spec, const StepInfo&) const override {
    return {.kind = Collective::all_gather, .bytes = bytes(spec)};
  }

  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte*) const override {
    outlet.expect("natural", bytes(spec));
    std::byte* out = outlet.data;
    SmallTeams<EncodeNatural<kBits>> slices(context.stream);
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
      slices.add(
          Plane<8>::groups(slice.numel),
          {source, dither_of(info, spec.fields[f]), slice.offset, position, slice.numel, out},
          kGroup);
      out += Exponents<kBits>::bytes(slice.numel);
    });
    slices.finish();
  }

  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo&, Tensor into, std::byte*) const override {
    payload.expect("natural", bytes(spec));
    const std::byte* in = payload.data;
    SmallTeams<DecodeNatural<kBits>> slices(context.stream);
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      slices.add(Plane<8>::groups(slice.numel),
                 {in, slice.numel, weight, add, into.data<float>() + slice.offset}, kGroup);
      in += Exponents<kBits>::bytes(slice.numel);
    });
    slices.finish();
  }

 private:
  static int64_t bytes(const UnitSpec& spec) {
    return sum_of_slices(spec, Exponents<kBits>::bytes);
  }
};

const CodeRegistration natural_registration(
    "natural", "powers of two, rounded at random (Horvath et al. 2019)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Code> {
      int bits = 9;
      config.bind("compression.bits", bits,
                  "bits of a number: 9 (sign and exponent), or 8 (sign and the exponents of 2^-108 "
                  "to 2^18)");
      return make_natural(bits, config);
    },
    Feedback::none);

}  // namespace

std::unique_ptr<Code> make_natural(int bits, const Config& places) {
  places.expect(bits == 8 || bits == 9, "compression.bits", bits, "8 or 9");
  if (bits == 8) return std::make_unique<NaturalCode<8>>();
  return std::make_unique<NaturalCode<9>>();
}

}  // namespace wisp
