#include "distributed/exchange/unit_exchange.h"

#include "core/clock.h"
#include "core/error.h"

namespace wisp {

UnitExchange::UnitExchange(Communicator& communicator, Context& context, FlatParameters& parameters,
                           std::vector<Compressor*> compressors, Cut cut, bool guard,
                           std::vector<int> neighbours)
    : context_(context),
      parameters_(parameters),
      compressors_(std::move(compressors)),
      cut_(std::move(cut)),
      memory_(context, parameters, cut_, compressors_, communicator.rank(), communicator.size()),
      wire_(communicator, context, memory_, parameters, cut_.bucket_bytes, std::move(neighbours)),
      step_plan_(parameters, cut_, compressors_, guard) {}

void UnitExchange::begin(const StepInfo& info) {
  info_ = info;
  if (step_plan_.make(info_)) wire_.fit(step_plan_.slots(), step_plan_.rounds());
  memory_.fit(step_plan_.rounds(), info_);
}

void UnitExchange::encode(int index, int round, Courier& courier) {
  const CutUnit& cut_unit = cut_.units[static_cast<size_t>(index)];
  Compressor& compressor = compressor_of(cut_unit);
  const Message& message =
      step_plan_.rounds()[static_cast<size_t>(index)].messages[static_cast<size_t>(round)];
  Unit& unit = memory_.unit(index);
  const double begin = now_us();
  if (round == 0 && !step_plan_.engaged(cut_unit)) {
    if (info_.applied > 0) compressor.engage(context_, unit, info_);
    step_plan_.engage(cut_unit);
  }
  const std::span<const Outlet> outlets = memory_.outlets(index, message);
  compressor.encode(context_, unit, info_, round, outlets);
  if (message.variable) memory_.fetch_used(index);
  context_.stream.synchronize();
  const double end = now_us();
  courier.cost.encode_ms += (end - begin) * 1e-3;
  if (!courier.trace().records(info_.step)) return;
  int64_t bytes = 0;
  for (size_t outlet = 0; outlet < outlets.size(); ++outlet)
    bytes += memory_.used(index, message, outlet);
  courier.trace().span(Lane::encode, cut_unit.name(parameters_.segments()), begin, end, info_.step,
                       bytes);
}

bool UnitExchange::start(const Slot& slot, Courier& courier) {
  wire_.start(slot, step_plan_.rounds(), info_.step);
  if (wire_.active()) return false;
  decode(slot, courier);
  return true;
}

bool UnitExchange::advance(Courier& courier) {
  if (!wire_.advance()) return false;
  const Slot& slot = wire_.slot();
  courier.cost.bytes_encoded += wire_.encoded_bytes();
  courier.cost.encode_ms += wire_.seal_us() * 1e-3;
  courier.cost.decode_ms += wire_.check_us() * 1e-3;
  courier.count(wire_.transfer(), wire_.wire_us(), concat("bucket ", slot.bucket), info_.step);
  decode(slot, courier);
  return true;
}

void UnitExchange::decode(const Slot& slot, Courier& courier) {
  for (size_t i = 0; i < slot.units.size(); ++i) {
    const int index = slot.units[i];
    const CutUnit& cut_unit = cut_.units[static_cast<size_t>(index)];
    const double begin = now_us();
    try {
      compressor_of(cut_unit).decode(context_, memory_.unit(index), info_, slot.round,
                                     wire_.payloads(i));
      context_.stream.synchronize();
    } catch (const Error& failure) {
      throw Error(concat("step ", info_.step, ", bucket ", slot.bucket, ": ", failure.what()));
    }
    const double end = now_us();
    courier.cost.decode_ms += (end - begin) * 1e-3;
    courier.trace().span(Lane::decode, cut_unit.name(parameters_.segments()), begin, end,
                         info_.step);
    const auto rounds = step_plan_.rounds()[static_cast<size_t>(index)].messages.size();
    if (static_cast<size_t>(slot.round) + 1 < rounds) encode(index, slot.round + 1, courier);
  }
}

}  // namespace wisp
