// A code turns numbers into bytes and back, without any state. Error feedback (error_feedback.h)
// turns a code into a Compressor; gossip uses codes directly. Codes are immutable: any thread may
// call them.
#pragma once

#include <optional>

#include "compression/compressor.h"
#include "core/prefetch.h"

namespace wisp {

/// The numbers that a code encodes: the gradient, or the gradient combined with the arena `kept` of
/// error feedback. A Source without pointers holds zeros. Call peek(i) any number of times, then
/// take(i) exactly once per element. After that, held(i) reads the same number, and sent(i, part)
/// reports how much of it is sent. Where this part is known at once, settle(i, value, part)
/// replaces take(i) and sent(i, part); `value` is the result of peek(i).
struct Source {
  const float* gradient = nullptr;  // arena
  float* kept = nullptr;  // arena or null: the residual, or the receivers' estimate of the gradient
  float gain = 1.0f;      // factor of the residual; with `tracks`, factor of the part that is sent
  bool tracks = false;    // `kept` is the receivers' estimate; only the difference to it is encoded
  float* masked = nullptr;  // arena or null: momentum, cleared where an element is sent

  WISP_HD float peek(int64_t i) const {
    if (!gradient) return 0.0f;
    if (!kept) return gradient[i];
    return tracks ? gradient[i] - kept[i] : gain * kept[i] + gradient[i];
  }
  /// Prefetches the 64 bytes from element i on, for a loop that peeks at them.
  WISP_HD void prefetch(int64_t i) const {
    if (gradient) prefetch_ahead(gradient + i);
    if (kept) prefetch_ahead(kept + i);
  }
  /// Returns peek(i); with error feedback also stores it in `kept`.
  WISP_HD float take(int64_t i) const {
    const float value = peek(i);
    if (kept && !tracks) kept[i] = value;
    return value;
  }
  /// Whether take() changes anything. If not, it need not be called.
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

/// Kernel that only calls take() for each element.
struct TakeAll {
  Source source;
  WISP_HD void operator()(int64_t i) const { source.take(i); }
};

/// A code, as the head of this file describes it. Calls run on the context's stream.
class Code {
 public:
  virtual ~Code() = default;

  /// Traits that concern the code alone. Error feedback sets the rest, such as momentum and
  /// clipping.
  virtual Traits traits() const { return {}; }
  /// Upper bound of E|Q(x) - x|² / |x|² for an unbiased code, E Q(x) = x. Empty for a biased code
  /// (a contraction), and for all codes without random numbers.
  virtual std::optional<double> variance(const UnitSpec&) const { return {}; }

  /// For a code that leaves elements out: the least share of this field that it keeps in any step.
  /// Without scaling, E|Q(x) - x|² <= (1 - share) |x|². Empty if there is no bound.
  virtual std::optional<double> least_share(const Field&) const { return {}; }

  /// A value that the workers agree on before they encode, for example a scale: an all_reduce of a
  /// few numbers. None by default.
  virtual Message agreement(const UnitSpec&, const StepInfo&) const { return {}; }
  /// Writes this worker's proposal for the agreement. Reads the source with peek() only.
  virtual void propose(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
                       std::byte* /*scratch*/) const {}
  /// Stores the agreement in scratch, where it stays until the last decode.
  virtual void agree(Context&, const Payload&, const UnitSpec&, const StepInfo&,
                     std::byte* /*scratch*/) const {}

  /// Collective that carries the encoded bytes: all_reduce if the sum of payloads is the payload of
  /// the sum, else all_gather. Message::bytes is exact, or a proven upper bound.
  virtual Message message(const UnitSpec&, const StepInfo&) const = 0;
  /// Bytes of scratch in this step; none by default.
  virtual int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const { return 0; }
  /// Calls sent() for every element that is sent, with the value that decode restores.
  virtual void encode(Context&, const Source&, const UnitSpec&, const StepInfo&, const Outlet&,
                      std::byte* scratch) const = 0;
  /// Writes weight * decoded into the unit's slices of the arena `into`, or adds it if `add`.
  /// Throws Error if the payload has an impossible size. Kernels report any other defect through
  /// Payload::complaint.
  virtual void decode(Context&, const Payload&, float weight, bool add, const UnitSpec&,
                      const StepInfo&, Tensor into, std::byte* scratch) const = 0;
  /// decode() with weight 1 for the sum of several payloads, in their order. A code overrides it if
  /// it can add payloads before it decodes them.
  virtual void decode_sum(Context& context, std::span<const Payload> payloads, bool add,
                          const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                          std::byte* scratch) const {
    for (size_t i = 0; i < payloads.size(); ++i)
      decode(context, payloads[i], 1.0f, add || i > 0, spec, info, into, scratch);
  }
};

/// Codes by name. The factory binds and checks its keys. With CompressorSetup::alone it throws
/// Error if the code has no payload that can be decoded alone.
using CodeRegistry = Registry<Code, Config&, const CompressorSetup&>;

}  // namespace wisp
