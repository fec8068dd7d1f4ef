// Codes that send each field as whole levels of one scale, and differ in the scale: terngrad, int8,
// int4. The scale may be
//   shared   the largest of all workers', agreed on first; levels are summed on the wire, in lanes
//            (lanes.h): u32 words of all slices
//   own      each worker's; payloads are gathered: f32 scale[fields], then the levels of each slice
//            in planes (levels.h)
//   auto     whichever sends less: a sum costs 2 (N - 1) / N times its 32 / each bits an element, a
//            gathered message N - 1 times its width. Depends on N and the levels alone, so that
//            no cut of the model changes bits.
#pragma once

#include "compression/quantize/lanes.h"

namespace wisp {

struct ScaledIntegerOptions {
  std::string name;  // in messages
  int levels = 1;
  bool shared = false, own = false;  // neither: auto
  bool nearest = false;              // rounding
  bool dense_1d = true;
  int workers = 1;  // of the run

  /// Binds compression.scaler.
  void bind_scaler(Config& config, const CompressorSetup& setup);
};

class ScaledIntegers : public Code {
 public:
  explicit ScaledIntegers(ScaledIntegerOptions options) : options_(std::move(options)) {}

  Traits traits() const override { return {.dense_1d = options_.dense_1d}; }
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
  /// scale[f] = this worker's of each field: what its numbers are clipped to. max |x| unless
  /// overridden. `scratch` has own_scales_bytes() bytes.
  virtual void own_scales(const Stream& stream, const Source& source, const UnitSpec& spec,
                          std::byte* scratch, float* scale) const;
  virtual int64_t own_scales_bytes(const UnitSpec& spec) const;

 private:
  bool shares(int workers) const;
  int64_t bytes(const UnitSpec& spec, int workers) const;

  ScaledIntegerOptions options_;
};

}  // namespace wisp
