// A code is pure: numbers in, bytes out, no state. Error feedback (error_feedback.h) turns any code
// into a Compressor; gossip uses codes directly.
#pragma once

#include <optional>

#include "compression/compressor.h"
#include "core/prefetch.h"

namespace wisp {

/// The numbers a code encodes: gradients; with `kept`, what error feedback makes of them; without
/// pointers, zeros. peek(i) may be called any number of times; then take(i) exactly once per
/// element; then held(i) reads the same number again, and sent(i, part) says what of it travels.
/// Where that is known at once, settle(i, value, part) stands for both, with what peek(i) gave.
struct Source {
  const float* gradient = nullptr;  // arena
  float* kept = nullptr;            // arena, or null: the residual, or what others know of gradient
  float gain = 1.0f;                // of the residual; where it tracks, of what travels
  bool tracks = false;              // `kept` is what others know: only the difference is encoded
  float* masked = nullptr;          // arena, or null: momentum, cleared where something is sent

  WISP_HD float peek(int64_t i) const {
    if (!gradient) return 0.0f;
    if (!kept) return gradient[i];
    return tracks ? gradient[i] - kept[i] : gain * kept[i] + gradient[i];
  }
  /// For a loop that peeks at the 64 bytes from element i on.
  WISP_HD void prefetch(int64_t i) const {
    if (gradient) prefetch_ahead(gradient + i);
    if (kept) prefetch_ahead(kept + i);
  }
  WISP_HD float take(int64_t i) const {
    const float value = peek(i);
    if (kept && !tracks) kept[i] = value;
    return value;
  }
  /// Whether take() changes anything: if not, it need not be called.
  bool accumulates() const { return kept && !tracks; }
  WISP_HD float held(int64_t i) const { return kept && !tracks ? kept[i] : peek(i); }
  WISP_HD void sent(int64_t i, float part) const { settle(i, kept ? kept[i] : 0.0f, part); }
  WISP_HD void settle(int64_t i, float value, float part) const {
    if (masked) masked[i] = 0.0f;
    if (!kept) return;
    if (tracks) {
      kept[i] += gain * part;
    } else {
      kept[i] = value == part ? 0.0f : value - part;
    }
  }
};

/// The kernel where nothing else is done with the arena's elements.
struct TakeAll {
  Source source;
  WISP_HD void operator()(int64_t i) const { source.take(i); }
};

class Code {
 public:
  virtual ~Code() = default;

  /// Where it works; what else the run must know of a compressor is error feedback's to say.
  virtual Traits traits() const { return {}; }
  /// The largest E|Q(x) - x|² / |x|² of a code whose mean is x; empty for a code that is biased
  /// (a contraction), as all but random roundings are.
  virtual std::optional<double> variance(const UnitSpec&) const { return {}; }

  /// Of a code that leaves elements out: the least share of this field that it keeps in any step,
  /// such that E|Q(x) - x|² <= (1 - share) |x|² without scaling; empty if nothing bounds it.
  virtual std::optional<double> least_share(const Field&) const { return {}; }

  /// What the workers must agree on before they encode, a scale say: an all_reduce of a few
  /// numbers. None by default.
  virtual Message agreement(const UnitSpec&, const StepInfo&) const { return {}; }
  /// Only peeks.
  virtual void propose(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
                       std::byte* /*scratch*/) const {}
  /// Keeps the agreement in scratch, where it stays until the last decode.
  virtual void agree(Context&, const Payload&, const UnitSpec&, const StepInfo&,
                     std::byte* /*scratch*/) const {}

  /// How the encoded bytes travel: all_reduce if a sum of payloads is the payload of the sum, else
  /// all_gather. Its bytes are exact, or the proven worst case.
  virtual Message message(const UnitSpec&, const StepInfo&) const = 0;
  virtual int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const = 0;
  /// Calls sent() for every element whose value travels, with what decode makes of it.
  virtual void encode(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
                      std::byte* scratch) const = 0;
  /// Writes weight * decoded into the unit's slices of the arena `into`, or adds it to what is
  /// there. Throws Error for a payload of bytes that it cannot have; what else is wrong with one,
  /// its kernels say (Payload::complaint).
  virtual void decode(Context&, const Payload&, float weight, bool add, const UnitSpec&,
                      const StepInfo&, Tensor into, std::byte* scratch) const = 0;
  /// The same, unweighted, for the sum of payloads, in their order; a code that can add them before
  /// it has decoded them does.
  virtual void decode_sum(Context& context, std::span<const Payload> payloads, bool add,
                          const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                          std::byte* scratch) const {
    for (size_t i = 0; i < payloads.size(); ++i)
      decode(context, payloads[i], 1.0f, add || i > 0, spec, info, into, scratch);
  }
};

/// Codes by name. The factory binds and checks its keys; it throws Error if it is to make payloads
/// that can be decoded alone (CompressorSetup::alone) and has none.
using CodeRegistry = Registry<Code, Config&, const CompressorSetup&>;

}  // namespace wisp
