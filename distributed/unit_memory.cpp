#include "distributed/unit_memory.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace wisp {
namespace {

int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

Tensor zeroed(Context& context, Shape shape, DType dtype) {
  Tensor tensor = context.empty(shape, dtype);
  std::memset(tensor.raw(), 0, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

}  // namespace

UnitMemory::UnitMemory(Context& context, FlatParameters& parameters, const Plan& plan,
                       std::span<Compressor* const> compressors, int workers)
    : context_(context),
      plan_(plan),
      workers_(workers),
      states_(plan.units.size()),
      wires_(plan.units.size()) {
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const PlannedUnit& planned = plan.units[i];
    Compressor& compressor = *compressors[static_cast<size_t>(planned.method)];
    const std::string& first =
        parameters.segments()[static_cast<size_t>(planned.segments.front())].name;
    for (const StateSpec& spec : compressor.state(planned.spec(), workers)) {
      if (spec.per_element) {
        WISP_CHECK(spec.dtype == parameters.dtype(), "state ", spec.name, " is ",
                   name_of(spec.dtype), ", the parameters are ", name_of(parameters.dtype()),
                   ": compression works on f32 parameters");
        states_[i].tensors.push_back(parameters.state(spec.name));
      } else {
        Tensor& tensor = unit_state_[first + "/" + spec.name];
        tensor = zeroed(context, spec.shape, spec.dtype);
        states_[i].tensors.push_back(tensor);
      }
    }
    Unit unit;
    unit.spec = planned.spec();
    unit.gradient = parameters.grad();
    unit.weight = parameters.weight();
    if (compressor.traits().momentum == Home::compressor)
      unit.momentum = parameters.state("momentum");
    units_.push_back(unit);
  }
  for (size_t i = 0; i < units_.size(); ++i) units_[i].state = &states_[i];
}

void UnitMemory::grow(Tensor& tensor, int64_t bytes) {
  if (tensor.defined() && tensor.bytes() >= bytes) return;
  tensor = {};  // first give back, then take
  tensor = context_.empty({bytes}, DType::u8);
}

void UnitMemory::fit(std::span<const UnitRounds> rounds, std::span<Compressor* const> compressors,
                     const StepInfo& info) {
  if (std::equal(rounds.begin(), rounds.end(), fitted_.begin(), fitted_.end())) return;
  fitted_.assign(rounds.begin(), rounds.end());
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!rounds[i].compressed) continue;
    Wire& wire = wires_[i];
    int64_t out = 0, in = 0;
    bool spread = false;  // an outlet per destination
    for (const Message& message : rounds[i].messages) {
      out = std::max(out, padded(message.bytes));
      if (message.kind != Collective::all_reduce && message.kind != Collective::none) in = out;
      spread |= message.kind == Collective::all_to_all;
    }
    wire.out_stride = std::max(wire.out_stride, out);
    wire.in_stride = std::max(wire.in_stride, in);
    grow(wire.out, wire.out_stride * (spread ? workers_ : 1));
    grow(wire.in, wire.in_stride * workers_);
    grow(wire.used, size_of(DType::i64) * workers_);
    Compressor& compressor = *compressors[static_cast<size_t>(plan_.units[i].method)];
    grow(wire.scratch, compressor.scratch_bytes(units_[i].spec, info));
    units_[i].scratch = wire.scratch.raw();
  }
}

std::span<const Outlet> UnitMemory::outlets(int index, const Message& message) {
  Wire& wire = wires_[static_cast<size_t>(index)];
  const int count = message.kind == Collective::all_to_all ? workers_ : 1;
  auto* used = reinterpret_cast<int64_t*>(wire.used.raw());
  wire.outlets.clear();
  for (int destination = 0; destination < count; ++destination) {
    wire.outlets.push_back({wire.out.raw() + destination * wire.out_stride, message.bytes,
                            message.variable ? used + destination : nullptr});
  }
  return wire.outlets;
}

std::byte* UnitMemory::inlet(int index, int from) const {
  const Wire& wire = wires_[static_cast<size_t>(index)];
  return wire.in.raw() + from * wire.in_stride;
}

int64_t UnitMemory::used(int index, const Message& message, int destination) const {
  if (!message.variable) return message.bytes;
  const Wire& wire = wires_[static_cast<size_t>(index)];
  return reinterpret_cast<const int64_t*>(wire.used.raw())[destination];
}

}  // namespace wisp
