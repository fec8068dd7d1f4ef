#include "distributed/exchange/unit_exchange.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

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
  encoded_rounds_.assign(cut_.units.size(), 0);
}

void UnitExchange::encode(int index, int round, Courier& courier) {
  const CutUnit& cut_unit = cut_.units[static_cast<size_t>(index)];
  Compressor& compressor = compressor_of(cut_unit);
  const Message& message =
      step_plan_.rounds()[static_cast<size_t>(index)].messages[static_cast<size_t>(round)];
  Unit& unit = memory_.unit(index);
  StreamWatch::Mark begin = courier.watch().mark();
  if (round == 0) {
    if (!step_plan_.engaged(cut_unit) && info_.applied > 0)
      compressor.engage(context_, unit, info_);
    step_plan_.engage(cut_unit, info_.workers);
  }
  const std::span<const Outlet> outlets = memory_.outlets(index, message);
  compressor.encode(context_, unit, info_, round, outlets);
  int& encoded = encoded_rounds_[static_cast<size_t>(index)];
  if (message.variable) {
    memory_.fetch_used(index);
  } else {
    encoded = round + 1;  // start() needs no size, and is in the order of the stream
  }
  courier.watch().then(std::move(begin), [this, &courier, &message, &encoded, index, round,
                                          count = outlets.size()](const StreamWatch::Span& span) {
    courier.cost.encode_ms += span.ms();
    encoded = std::max(encoded, round + 1);
    if (!courier.trace().records(info_.step)) return;
    int64_t bytes = 0;
    for (size_t outlet = 0; outlet < count; ++outlet) bytes += memory_.used(index, message, outlet);
    courier.trace().span(Lane::encode, name_of(index), span.begin_us, span.end_us, info_.step,
                         bytes);
  });
}

void UnitExchange::release(int index) {
  const CutUnit& cut_unit = cut_.units[static_cast<size_t>(index)];
  if (!step_plan_.engaged(cut_unit)) return;
  compressor_of(cut_unit).release(context_, memory_.unit(index), info_);
  step_plan_.release(cut_unit);
}

bool UnitExchange::encoded(const Slot& slot) const {
  return std::all_of(slot.units.begin(), slot.units.end(), [&](int unit) {
    return encoded_rounds_[static_cast<size_t>(unit)] > slot.round;
  });
}

void UnitExchange::start(const Slot& slot, Courier& courier) {
  slot_ = &slot;
  StreamWatch::Mark begin = courier.watch().mark();
  if (wire_.open(slot, step_plan_.rounds(), info_.step)) {
    courier.watch().then(std::move(begin), [&courier](const StreamWatch::Span& span) {
      courier.cost.encode_ms += span.ms();
    });
  }
  wire_.start();
  if (!wire_.active()) decode(courier);
}

void UnitExchange::advance(Courier& courier) {
  if (!wire_.advance()) return;
  courier.cost.bytes_encoded += wire_.encoded_bytes();
  courier.count(wire_.transfer(), wire_.wire_us(), concat("bucket ", slot_->bucket), info_.step);
  StreamWatch::Mark begin = courier.watch().mark();
  if (!wire_.inspect()) return decode(courier);
  courier.watch().then(std::move(begin), [this, &courier](const StreamWatch::Span& span) {
    courier.cost.decode_ms += span.ms();
    wire_.check();
    decode(courier);
  });
}

void UnitExchange::decode(Courier& courier) {
  const Slot& slot = *slot_;
  for (size_t i = 0; i < slot.units.size(); ++i) {
    const int index = slot.units[i];
    StreamWatch::Mark begin = courier.watch().mark();
    try {
      compressor_of(cut_.units[static_cast<size_t>(index)])
          .decode(context_, memory_.unit(index), info_, slot.round, wire_.payloads(i));
    } catch (const Error& failure) {
      throw Error(concat("step ", info_.step, ", bucket ", slot.bucket, ": ", failure.what()));
    }
    courier.watch().then(std::move(begin), [this, &courier, index,
                                            step = info_.step](const StreamWatch::Span& span) {
      courier.cost.decode_ms += span.ms();
      courier.trace().span(Lane::decode, name_of(index), span.begin_us, span.end_us, step);
    });
    const auto rounds = step_plan_.rounds()[static_cast<size_t>(index)].messages.size();
    if (static_cast<size_t>(slot.round) + 1 < rounds) encode(index, slot.round + 1, courier);
  }
  slot_ = nullptr;
}

void UnitExchange::end(Courier& courier) {
  if (step_plan_.compressed_units() == 0) return;
  StreamWatch::Mark begin = courier.watch().mark();
  memory_.fetch_complaints();
  courier.watch().then(std::move(begin), [this](const StreamWatch::Span&) { check(); });
}

void UnitExchange::check() const {
  for (int unit = 0; unit < std::ssize(cut_.units); ++unit) {
    const std::string complaint = memory_.complaint_of(unit);
    WISP_CHECK(complaint.empty(), "step ", info_.step, ", bucket ",
               cut_.units[static_cast<size_t>(unit)].bucket, ", unit of ", name_of(unit), ": ",
               complaint);
  }
}

}  // namespace wisp
