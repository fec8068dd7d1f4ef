#include "compression/sparse/sparse_code.h"

namespace wisp {
namespace {

class SparseCode final : public Code {
 public:
  SparseCode(SparseWire wire, const Selection& selection, double least_ratio)
      : wire_(wire), selection_(selection), least_ratio_(least_ratio) {}

  Traits traits() const override { return {.sparse = true}; }
  std::optional<double> least_share(const Field& field) const override {
    if (selection_.kind != Selection::Kind::exact) return {};  // others may select fewer, or none
    return static_cast<double>(kept_count(least_ratio_, field.numel)) /
           static_cast<double>(field.numel);
  }
  Message message(const UnitSpec& spec, const StepInfo& info) const override {
    return {.kind = Collective::all_gather,
            .bytes = wire_.capacity(spec, {info.ratio}),
            .variable = true};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return wire_.encode_bytes(spec, {info.ratio}, selection_.kind);
  }
  void encode(Context& context, const Source& source, const UnitSpec& spec, const StepInfo& info,
              const Outlet& outlet, std::byte* scratch) const override {
    wire_.encode(
        context.stream, spec, info, selection_, [&](const Field&) { return source; }, outlet,
        scratch);
  }
  void decode(Context& context, const Payload& payload, float weight, bool add,
              const UnitSpec& spec, const StepInfo& info, Tensor into,
              std::byte* scratch) const override {
    wire_.decode(context.stream, spec, {info.ratio}, {&payload, 1}, weight, add, into, scratch);
  }
  void decode_sum(Context& context, std::span<const Payload> payloads, bool add,
                  const UnitSpec& spec, const StepInfo& info, const Tensor& into,
                  std::byte* scratch) const override {
    wire_.decode(context.stream, spec, {info.ratio}, payloads, 1.0f, add, into, scratch);
  }

 private:
  SparseWire wire_;
  Selection selection_;
  double least_ratio_;
};

}  // namespace

std::unique_ptr<Code> make_sparse_code(SparseWire wire, const Selection& selection,
                                       double least_ratio) {
  check_least_ratio(least_ratio);
  return std::make_unique<SparseCode>(wire, selection, least_ratio);
}

}  // namespace wisp
