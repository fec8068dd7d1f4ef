#include "distributed/exchange/unit_exchange.h"

#include <limits>
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

void UnitExchange::begin(const StepInfo& info, ExchangeScheduler::Items items) {
  info_ = info;
  if (step_plan_.make(info_)) wire_.fit(step_plan_.slots(), step_plan_.rounds());
  memory_.fit(step_plan_.rounds(), info_);
  scheduler_.begin(step_plan_.slots(), items);
}

void UnitExchange::run(const Work& measure, const Work& prepare, Courier& courier) {
  for (;;) {
    const uint64_t seen = courier.inbox().events();
    if (courier.poll()) continue;
    for (int item; (item = courier.inbox().take()) >= 0;) scheduler_.ready(item);
    if (scheduler_.asks_wire() && wire_.pending().ready()) scheduler_.arrived();
    const auto [kind, index] = scheduler_.next();
    const auto slot = [&, i = index]() -> const Slot& {
      return step_plan_.slots()[static_cast<size_t>(i)];
    };
    switch (kind) {
      case Action::Kind::measure:
        scheduler_.measuring(index);
        measure(index);
        break;
      case Action::Kind::prepare:
        prepare(index);
        scheduler_.prepared(index);
        break;
      case Action::Kind::start:
        start(slot(), courier);
        break;
      case Action::Kind::advance:
        advance(slot(), courier);
        break;
      case Action::Kind::decode:
        decode(slot(), courier);
        break;
      case Action::Kind::wait:
        courier.wait(seen, wire_.active() ? wire_.pending().ready_at_us()
                                          : std::numeric_limits<double>::infinity());
        break;
      case Action::Kind::done:
        return;
    }
  }
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
    step_plan_.engage(cut_unit, info_.summands);
  }
  const std::span<const Outlet> outlets = memory_.outlets(index, message);
  compressor.encode(context_, unit, info_, round, outlets);
  if (message.variable) {
    memory_.fetch_used(index);
  } else {
    scheduler_.encoded(index, round);  // no size is needed, and sending is in the stream's order
  }
  courier.watch().then(std::move(begin), [this, &courier, &message, index, round,
                                          count = outlets.size()](const StreamWatch::Span& span) {
    courier.cost.encode_ms += span.ms();
    scheduler_.encoded(index, round);
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

/// Starts a slot. A slot without messages can be decoded at once.
void UnitExchange::start(const Slot& slot, Courier& courier) {
  StreamWatch::Mark begin = courier.watch().mark();
  if (wire_.open(slot, step_plan_.rounds(), info_.step)) {
    courier.watch().then(std::move(begin), [&courier](const StreamWatch::Span& span) {
      courier.cost.encode_ms += span.ms();
    });
  }
  wire_.start();
  scheduler_.started(wire_.active());
}

/// Finishes a phase of the slot. When all data has arrived, it is counted and checked.
void UnitExchange::advance(const Slot& slot, Courier& courier) {
  const bool all = wire_.advance();
  scheduler_.advanced(all);
  if (!all) return;
  courier.cost.bytes_encoded += wire_.encoded_bytes();
  courier.count(wire_.transfer(), wire_.wire_us(), concat("bucket ", slot.bucket), info_.step);
  StreamWatch::Mark begin = courier.watch().mark();
  if (!wire_.inspect()) return scheduler_.checked();
  courier.watch().then(std::move(begin), [this, &courier](const StreamWatch::Span& span) {
    courier.cost.decode_ms += span.ms();
    wire_.check();
    scheduler_.checked();
  });
}

/// Decodes the slot's units, and encodes their next rounds.
void UnitExchange::decode(const Slot& slot, Courier& courier) {
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
  scheduler_.decoded();
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
