// Sparse codes that draw their positions instead of choosing them: whoever knows seed, step, field
// and rank draws the same ones, so that only values travel, field after field. With
// compression.sharing = "shared" all ranks draw the same and the values are summed on the way; with
// "own" each draws its own, the values are gathered, and the receiver draws the sender's again.
#pragma once

#include "compression/code.h"
#include "compression/wire_value.h"
#include "core/random.h"

namespace wisp {

struct DrawnOptions {
  DType values = DType::f32;  // or f16, bf16
  bool shared = true;
  bool unbiased = false;     // what is decoded is scaled by numel / kept
  double least_ratio = 1.0;  // over all steps
};

/// Binds compression.sharing, values, unbiased and the ratio's keys.
DrawnOptions bind_drawn(Config& config, const CompressorSetup& setup);

class DrawnCode : public Code {
 public:
  explicit DrawnCode(const DrawnOptions& options) : options_(options) {}

  /// Vectors are dense, unlike in the papers' codes: a norm's weight or bias that is drawn once in
  /// a hundred steps moves by the sum of a hundred stale gradients, and with momentum nothing
  /// learns.
  Traits traits() const override { return {.sparse = true, .drawn = true}; }
  std::optional<double> variance(const UnitSpec& spec) const override;
  std::optional<double> least_share(const Field& field) const override;
  Message message(const UnitSpec& spec, const StepInfo& info) const override;
  int64_t scratch_bytes(const UnitSpec&, const StepInfo&) const override { return 0; }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override;
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override;

 protected:
  /// What of a field travels.
  struct Draw {
    const Field& field;
    int64_t kept;
    Philox random;  // its block 0 is the key of dither
    Dither dither;
    float scale;  // of what is decoded

    /// A position of the field, uniform but for a bias below numel / 2^64.
    int64_t start() const { return random.below64(1, field.numel); }
  };

  /// What of a unit does.
  struct Draws {
    const DrawnCode& code;
    const UnitSpec& spec;
    const StepInfo& info;
    int rank;

    DType values() const { return code.options_.values; }
    int summands() const { return code.options_.shared ? info.workers : 1; }  // on the wire
    /// visit(draw, at) for each field: its values begin with the at-th.
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

  /// How many elements of a field travel, in 1 to its numel.
  virtual int64_t kept(const Field& field, double ratio) const = 0;
  /// take() of all elements, or of none if the source does not accumulate; sent() of the kept ones.
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
