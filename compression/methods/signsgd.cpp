// Signs decided by a majority of the workers. Per worker, with gradient g:
//   signsgd:   vote sgn(g)
//   signum:    v <- β v + (1 - β) g;   vote sgn(v)                (β: the optimizer's momentum)
//   everywhere: V = sgn(Σ over workers of votes);   w <- w - lr (V + decay w)
// A bit per element: sgn(0) = +1. A tie (even N) is + where the element's index in its slice plus
// the step is even, else -. If ties always had the same sign, all weights would drift: with four
// workers that vote at random, three in eight votes are ties. A worker whose gradient is not finite
// votes + and - in turn (signsgd), or by its v (signum). Wire: the unit's bits (a plane for each
// slice) are cut into N shares of the same bytes. Each share goes to its owner, who counts the
// votes and sends the majorities to all. bytes of a share = ceil(Σ ceil(numel / 8) / N), so a
// worker sends 2 (N - 1) shares, whatever N. Source: Bernstein et al. 2019, algorithm 1 (there one
// server counts; owners of shares are ours).
#include <bit>
#include <optional>

#include "compression/cursor.h"
#include "compression/methods/methods.h"
#include "compression/quantize/sign_plane.h"
#include "compression/slices.h"

namespace wisp {
namespace {

/// The votes of a slice.
struct Vote {
  using Shared = group::Codes;
  const float* gradient;  // null if it is not finite
  float* average;         // v; null for signsgd
  float beta;
  int64_t offset;
  Plane<1> plane;
  WISP_HD float ballot(int64_t i) const {
    if (!average) return gradient ? gradient[i] : static_cast<float>(i & 1) - 0.5f;
    if (gradient) average[i] = beta * average[i] + (1.0f - beta) * gradient[i];
    return average[i];
  }
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t group, Shared& positive) const {
    const int64_t at = group * group::kSize;
    if (gradient) group::prefetch(gradient + offset + at);
    if (average) group::prefetch(average + offset + at);
    group::fill(team, group::size_at(at, plane.numel), positive.code,
                [&](int64_t j) { return static_cast<uint8_t>(ballot(offset + at + j) >= 0.0f); });
    plane.store(team, group, positive.code);
  }
};

/// Counts of votes, stored as planes of binary digits with 64 counts per word. The initial value
/// makes the highest digit the majority: 2^(digits - 1) - ceil(N / 2), for N < 2^digits votes.
struct Counts {
  int digits;
  uint32_t first;
  int64_t bytes, words;  // size of a plane
  uint64_t* planes;

  Counts(Cursor& cursor, int64_t share, int votes)
      : digits(std::bit_width(static_cast<uint32_t>(votes))),
        first((1u << (digits - 1)) - static_cast<uint32_t>((votes + 1) / 2)),
        bytes(share),
        words((share + 7) / 8),
        planes(cursor.take<uint64_t>(words * digits)) {}
  const std::byte* majority() const {
    return reinterpret_cast<const std::byte*>(planes + (digits - 1) * words);
  }
};

struct CountVotes {
  const std::byte* votes;
  bool begins;
  uint64_t negative;  // bits where a tie is -: the count begins one lower
  Counts counts;
  WISP_HD void operator()(int64_t word) const {
    const int64_t left = counts.bytes - 8 * word;
    uint64_t carry = 0;
    if (left >= 8) {
      memcpy(&carry, votes + 8 * word, 8);
    } else {
      memcpy(&carry, votes + 8 * word, static_cast<size_t>(left));
    }
    for (int digit = 0; digit < counts.digits; ++digit) {
      uint64_t& count = counts.planes[digit * counts.words + word];
      const uint64_t first = 0 - static_cast<uint64_t>(counts.first >> digit & 1u);
      const uint64_t lower = 0 - static_cast<uint64_t>((counts.first - 1) >> digit & 1u);
      const uint64_t before = begins ? (first & ~negative) | (lower & negative) : count;
      count = before ^ carry;
      carry &= before;
    }
  }
};

struct AddDecay {
  const float* weight;
  float decay;
  float* update;
  WISP_HD void operator()(int64_t i) const { update[i] += decay * weight[i]; }
};

struct Unity {
  float* value;
  WISP_HD void operator()() const { *value = 1.0f; }
};

/// Scratch until the last decode: the counts of the own share, and the bits of all ranks' shares.
struct VoteScratch {
  float* one;
  Counts counts;
  std::byte* bits;

  VoteScratch(Cursor& cursor, int64_t share, const StepInfo& info)
      : one(cursor.take<float>(1)),
        counts(cursor, share, info.summands),
        bits(cursor.take<std::byte>(share * info.ranks)) {}
};

class MajorityVote final : public Compressor {
 public:
  /// signsgd without `local`, signum with it.
  explicit MajorityVote(const std::optional<LocalMomentum>& local)
      : averages_(local.has_value()),
        beta_(local ? local->momentum : 0.0),
        decay_(local ? local->weight_decay : 0.0) {}

  Traits traits() const override {
    if (!averages_) return {.dense_1d = false, .represents_zero = false};
    return {.momentum = Home::compressor,
            .decay = Home::compressor,
            .result = UpdateRule::update,
            .dense_1d = false,
            .represents_zero = false};
  }
  std::vector<StateSpec> state(const UnitSpec&, int workers) const override {
    WISP_CHECK(workers < 32768, "majority vote: ", workers, " workers, expected less than 32768");
    return {};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<VoteScratch>(share_bytes(spec, info), info);
  }
  int rounds(const UnitSpec&, const StepInfo&) const override { return 2; }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    return {.kind = round == 0 ? Collective::all_to_all : Collective::all_gather,
            .bytes = share_bytes(spec, info)};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const int64_t share = share_bytes(unit.spec, info);
    const auto scratch = lay_out<VoteScratch>(unit.scratch, share, info);
    if (round == 0) write_votes(context, unit, scratch.bits, share * info.ranks);
    for (size_t i = 0; i < outlets.size(); ++i) {
      const std::byte* from =
          round == 0 ? scratch.bits + static_cast<int64_t>(i) * share : scratch.counts.majority();
      parallel_for(context.stream, share, CopyAll<std::byte>{from, outlets[i].data});
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const int64_t share = share_bytes(unit.spec, info);
    const auto scratch = lay_out<VoteScratch>(unit.scratch, share, info);
    for (size_t i = 0; i < payloads.size(); ++i) {
      payloads[i].expect("majority vote", share);
      if (round == 0) {
        parallel_for(context.stream, scratch.counts.words,
                     CountVotes{payloads[i].data, i == 0, negative_ties(info), scratch.counts}, 64);
      } else {
        parallel_for(context.stream, share,
                     CopyAll<std::byte>{payloads[i].data, scratch.bits + payloads[i].from * share});
      }
    }
    if (round == 1) apply(context, unit, scratch);
  }

  /// The optimizer's momentum is a sum of heavy-ball steps of the mean gradient. It becomes a
  /// worker's share of the average.
  void engage(Context& context, Unit& unit, const StepInfo& info) override {
    if (averages_) scale_momentum(context, unit, (1.0 - beta_) / info.summands);
  }
  void release(Context& context, Unit& unit, const StepInfo& info) override {
    if (averages_) unscale_momentum(context, unit, (1.0 - beta_) / info.summands);
  }

 private:
  static uint64_t negative_ties(const StepInfo& info) {
    if (info.summands % 2 > 0) return 0;
    return info.step % 2 > 0 ? 0x5555555555555555u : 0xaaaaaaaaaaaaaaaau;
  }
  static int64_t share_bytes(const UnitSpec& spec, const StepInfo& info) {
    return (signs_bytes(spec) + info.ranks - 1) / info.ranks;
  }

  void write_votes(Context& context, const Unit& unit, std::byte* bits, int64_t bytes) const {
    const std::byte* end = bits + bytes;
    SmallTeams<Vote> votes(context.stream);
    each_slice(unit.spec, [&](size_t, const Slice& slice, int64_t) {
      votes.add(Plane<1>::groups(slice.numel),
                {unit.finite ? unit.gradient.data<float>() : nullptr,
                 averages_ ? unit.momentum.data<float>() : nullptr,
                 static_cast<float>(beta_),
                 slice.offset,
                 {bits, slice.numel}},
                group::kSize);
      bits += Plane<1>::bytes(slice.numel);
    });
    votes.finish();
    clear_bytes(context.stream, bits, end);
  }

  void apply(Context& context, const Unit& unit, const VoteScratch& scratch) const {
    run_once(context.stream, Unity{scratch.one});
    const std::byte* bits = scratch.bits;
    float* update = unit.gradient.data<float>();
    SmallTeams<ReadSigns> signs(context.stream);
    each_slice(unit.spec, [&](size_t, const Slice& slice, int64_t) {
      signs.add(Plane<1>::groups(slice.numel),
                {{bits, slice.numel}, scratch.one, 1.0f, false, update + slice.offset},
                group::kSize);
      bits += Plane<1>::bytes(slice.numel);
    });
    signs.finish();
    if (decay_ == 0.0) return;
    each_slice(unit.spec, [&](size_t f, const Slice& slice, int64_t) {
      if (!unit.spec.fields[f].decay) return;
      parallel_for(context.stream, slice.numel,
                   AddDecay{unit.weight.data<float>() + slice.offset, static_cast<float>(decay_),
                            update + slice.offset});
    });
  }

  bool averages_;
  double beta_, decay_;
};

const CompressorRegistration signsgd(
    "signsgd", "signs by majority vote, for a learning rate of about 1e-4 (Bernstein et al. 2019)",
    [](Config&, const CompressorSetup&) { return make_signsgd(); });
const CompressorRegistration signum("signum",
                                    "signs of the momentum by majority vote, for a learning rate "
                                    "of about 1e-4 (Bernstein et al. 2019)",
                                    [](Config& config, const CompressorSetup& setup) {
                                      return make_signum(local_momentum(setup), config);
                                    });

}  // namespace

std::unique_ptr<Compressor> make_signsgd() { return std::make_unique<MajorityVote>(std::nullopt); }

std::unique_ptr<Compressor> make_signum(const LocalMomentum& local, const Config& places) {
  local.check();
  WISP_CHECK(!local.nesterov, places.opening("optimizer.nesterov"),
             "signum votes by an average of gradients and knows no Nesterov step; set "
             "optimizer.nesterov = false");
  return std::make_unique<MajorityVote>(local);
}

}  // namespace wisp
