// Codes that send each field as integer levels of one scale: terngrad, int8, int4. They differ in
// the scale, which may be
//   shared   the largest scale of all workers, agreed on first; the wire sums levels in lanes
//            (lanes.h): u32 words of all slices
//   own      each worker's scale; payloads are gathered: f32 scale[fields], then the levels of each
//            slice in planes (levels.h)
//   auto     the one that sends less
// A sum costs 2 (N - 1) / N times 32 / each bits an element, a gathered message N - 1 times its
// width. The choice depends on N and the levels alone, so no cut of the model changes bits.
// Immutable; any thread.
#pragma once

#include "compression/quantize/lanes.h"

namespace wisp {

enum class Scales { automatic, shared, own };

struct ScaledIntegerOptions {
  Scales scales = Scales::automatic;
  bool nearest = false;  // round to nearest, not at random
  int workers = 1;       // must be those of the run; decides whether feedback around rounding
                         // at random is refused

  /// Binds compression.scaler.
  void bind_scaler(Config& config, const CompressorSetup& setup);
};

class ScaledIntegers : public Code {
 public:
  /// `name` is for messages. Throws Error for an option out of range.
  ScaledIntegers(const char* name, int levels, bool dense_1d, const ScaledIntegerOptions& options)
      : name_(name), levels_(levels), dense_1d_(dense_1d), options_(options) {
    WISP_CHECK(options.workers > 0, name, ": ", options.workers, " workers, expected 1 or more");
  }

  Traits traits() const override { return {.dense_1d = dense_1d_}; }
  std::optional<double> variance(const UnitSpec& spec) const override;
  Message agreement(const UnitSpec& spec, const StepInfo& info) const override;
  void propose(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
               const Outlet& outlet, std::byte* scratch) const override;
  void agree(Context& context, const Payload& payload, const UnitSpec& spec, const StepInfo& info,
             std::byte* scratch) const override;
  Message message(const UnitSpec& spec, const StepInfo& info) const override;
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override;
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override;
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override;

 protected:
  /// scale[f] = this worker's scale of field f, to which its numbers are clipped: max |x| unless
  /// overridden. `scratch` has own_scales_bytes() bytes.
  virtual void own_scales(const Stream& stream, const Source& source, const UnitSpec& spec,
                          std::byte* scratch, float* scale) const;
  virtual int64_t own_scales_bytes(const UnitSpec& spec) const;

 private:
  bool shares(int ranks, int summands) const;
  bool shares(const StepInfo& info) const { return shares(info.ranks, info.summands); }
  int64_t bytes(const UnitSpec& spec, const StepInfo& info) const;

  const char* name_;
  int levels_;
  bool dense_1d_;
  ScaledIntegerOptions options_;
};

}  // namespace wisp
