// Sparse codes that draw their positions at random. Seed, step, field and rank determine the draw,
// so only values are sent, field after field. With compression.sharing = "shared", all ranks draw
// the same positions, and values are summed on the way. With "own", each rank draws its own, values
// are gathered, and the receiver repeats the sender's draw. Immutable; any thread.
#pragma once

#include "compression/code.h"
#include "compression/wire_value.h"
#include "core/random.h"

namespace wisp {

struct DrawnOptions {
  DType values = DType::f32;  // f32, f16 or bf16
  bool shared = true;
  bool unbiased = false;     // scale decoded values by numel / kept
  double least_ratio = 1.0;  // must be the least ratio of all steps; decides whether feedback
                             // around an unbiased code is refused
};

/// Binds compression.sharing, values, unbiased and the keys of the ratio.
DrawnOptions bind_drawn(Config& config, const CompressorSetup& setup);

class DrawnCode : public Code {
 public:
  /// Throws Error for an option out of range.
  explicit DrawnCode(const DrawnOptions& options);

  /// Vectors stay dense, unlike in the papers' codes. A norm's weight or bias that is drawn once in
  /// a hundred steps moves by the sum of a hundred stale gradients, and with momentum nothing is
  /// learned.
  Traits traits() const override { return {.sparse = true, .drawn = true}; }
  std::optional<double> variance(const UnitSpec& spec) const override;
  std::optional<double> least_share(const Field& field) const override;
  Message message(const UnitSpec& spec, const StepInfo& info) const override;
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override;
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override;

 protected:
  /// The part of a field that is sent.
  struct Draw {
    const Field& field;
    int64_t kept;
    Philox random;  // Dither's key is its block 0
    Dither dither;
    float scale;  // factor of decoded values

    /// A field position, uniform up to a bias below numel / 2^64.
    int64_t start() const { return random.below64(1, field.numel); }
  };

  /// The parts of all fields of a unit that are sent.
  struct Draws {
    const DrawnCode& code;
    const UnitSpec& spec;
    const StepInfo& info;
    int rank;

    DType values() const { return code.options_.values; }
    int summands() const { return code.options_.shared ? info.summands : 1; }
    /// visit(draw, at) for each field; `at` is the index of its first value.
    template <class Visit>
    void each(const Visit& visit) const {
      int64_t at = 0;
      for (const Field& field : spec.fields) {
        const Draw draw = code.draw_of(field, info, rank);
        visit(draw, at);
        at += draw.kept;
      }
    }
  };

  /// Number of elements of a field that are sent, from 1 to its numel.
  virtual int64_t kept(const Field& field, double ratio) const = 0;
  /// Calls take() for all elements, or for none if the source does not accumulate; and sent() for
  /// the kept ones.
  virtual void encode_drawn(const Stream& stream, const Draws& draws, const Source& source,
                            std::byte* values) const = 0;
  virtual void decode_drawn(const Stream& stream, const Draws& draws, const std::byte* values,
                            float weight, bool add, const Tensor& into) const = 0;

 private:
  int64_t bytes_of(const UnitSpec& spec, double ratio) const;
  Draw draw_of(const Field& field, const StepInfo& info, int rank) const;

  DrawnOptions options_;
};

}  // namespace wisp
