#include "distributed/exchange/unit_memory.h"

#include <algorithm>

#include "core/base/error.h"
#include "distributed/exchange/message_traffic.h"
#include "distributed/exchange/wire_header.h"

namespace wisp {
namespace {

/// Distance between the outlets of a message: room for a header, then the payload.
int64_t stride_of(const Message& message) { return kFront + whole_fronts(message.bytes); }

}  // namespace

UnitMemory::UnitMemory(Context& context, FlatParameters& parameters, const Cut& cut,
                       std::span<Compressor* const> compressors, int rank, int workers)
    : context_(context),
      cut_(cut),
      compressors_(compressors),
      workers_(workers),
      states_(cut.units.size()),
      wires_(cut.units.size()),
      complaints_(context, {std::ssize(cut.units)}, DType::i64) {
  WISP_CHECK(cut.units.empty() || parameters.dtype() == DType::f32, "compression works on f32 ",
             "parameters, these are ", name_of(parameters.dtype()));
  for (size_t i = 0; i < cut.units.size(); ++i) {
    const CutUnit& cut_unit = cut.units[i];
    const Compressor& compressor = *compressors[static_cast<size_t>(cut_unit.method)];
    const auto segment_name = [&](size_t segment) {
      return parameters.segment(cut_unit.segments[segment]).name;
    };
    for (const StateSpec& spec : compressor.state(cut_unit.spec(), workers)) {
      if (spec.per_element) {
        WISP_CHECK(spec.dtype == parameters.dtype(), "state ", spec.name, " is ",
                   name_of(spec.dtype), ", per-element state has the parameters' dtype, ",
                   name_of(parameters.dtype()));
        const Tensor& arena = parameters.state(spec.name);
        states_[i].tensors.push_back(arena);
        const std::vector<Slice> owned = compressor.owned(cut_unit.spec(), rank, workers);
        for (const int id : cut_unit.segments) save(spec, arena, parameters.segment(id), owned);
      } else {
        const Tensor tensor = context.zeros(spec.shape, spec.dtype);
        states_[i].tensors.push_back(tensor);
        const auto field = static_cast<size_t>(std::max(spec.field, 0));
        const bool by_segment = spec.field >= 0 && cut_unit.fields[field].slices.size() == 1;
        const std::string name = by_segment ? spec.name + "/" + segment_name(field)
                                            : "unit/" + segment_name(0) + "/" + spec.name;
        saved_.push_back({.name = name,
                          .tensor = tensor,
                          .sharing = spec.sharing,
                          .on_resize = spec.on_resize,
                          .check = spec.check});
        has_unit_state_ = has_unit_state_ || !by_segment;
      }
    }
    Unit& unit = units_.emplace_back();
    unit.spec = cut_unit.spec();
    unit.gradient = parameters.grad();
    unit.weight = parameters.weight();
    if (compressor.traits().momentum == Home::compressor)
      unit.momentum = parameters.state("momentum");
    if (compressor.traits().squares) unit.square = parameters.state("square");
    unit.state = &states_[i];
  }
}

/// Saves a segment's part of per-element state.
void UnitMemory::save(const StateSpec& spec, const Tensor& arena, const Segment& segment,
                      std::span<const Slice> owned) {
  const std::string name = spec.name + "/" + segment.name;
  if (spec.on_resize != OnResize::owner) {
    saved_.push_back({.name = name,
                      .tensor = FlatParameters::view(arena, segment),
                      .sharing = spec.sharing,
                      .on_resize = spec.on_resize,
                      .check = spec.check});
    return;
  }
  const auto save_part = [&](int64_t begin, int64_t end) {
    saved_.push_back({.name = part_name({name, begin, end}),
                      .tensor = arena.slice(segment.offset + begin, {end - begin}),
                      .sharing = spec.sharing,
                      .on_resize = spec.on_resize,
                      .check = spec.check});
  };
  bool any = false;
  for (const Slice& slice : owned) {
    const int64_t begin = std::max<int64_t>(slice.offset - segment.offset, 0);
    const int64_t end = std::min(slice.offset + slice.numel - segment.offset, segment.numel);
    if (begin >= end) continue;
    save_part(begin, end);
    any = true;
  }
  if (!any) save_part(0, 0);  // all ranks save tensors of the same names
}

void UnitMemory::grow(Tensor& tensor, int64_t bytes) {
  if (tensor.defined() && tensor.bytes() >= bytes) return;
  tensor = {};  // free the old memory first
  tensor = context_.empty({bytes}, DType::u8);
}

void UnitMemory::fit(std::span<const UnitRounds> rounds, const StepInfo& info) {
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!rounds[i].compressed) continue;
    Wire& wire = wires_[i];
    int64_t bytes = 0;
    int outlets = 0;
    for (const Message& message : rounds[i].messages) {
      const int count = outlet_count(message, workers_);
      bytes = std::max(bytes, count * stride_of(message));
      outlets = std::max(outlets, count);
    }
    grow(wire.out, bytes);
    if (!wire.used.device().defined() || wire.used.device().numel() < outlets)
      wire.used = DeviceWords(context_, {outlets}, DType::i64);
    wire.outlets.reserve(static_cast<size_t>(outlets));
    const Compressor& compressor = *compressors_[static_cast<size_t>(cut_.units[i].method)];
    grow(wire.scratch, compressor.scratch_bytes(units_[i].spec, info));
    units_[i].scratch = wire.scratch.raw();
  }
}

std::span<const Outlet> UnitMemory::outlets(int index, const Message& message) {
  Wire& wire = wires_[static_cast<size_t>(index)];
  auto* used = wire.used.device().data<int64_t>();
  wire.outlets.clear();
  for (int i = 0; i < outlet_count(message, workers_); ++i) {
    wire.outlets.push_back({wire.out.raw() + i * stride_of(message) + kFront, message.bytes,
                            message.variable ? used + i : nullptr});
  }
  return wire.outlets;
}

int64_t UnitMemory::used(int index, const Message& message, size_t outlet) const {
  if (!message.variable) return message.bytes;
  const Wire& wire = wires_[static_cast<size_t>(index)];
  const int64_t used = wire.used.host().data<int64_t>()[outlet];
  WISP_CHECK(0 <= used && used <= message.bytes, "unit ", index, " encoded ", used,
             " bytes into a message of at most ", message.bytes);
  return used;
}

}  // namespace wisp
