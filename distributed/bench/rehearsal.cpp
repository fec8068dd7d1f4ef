#include "distributed/bench/rehearsal.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/loops/parallel.h"
#include "distributed/bench/stream_time.h"
#include "distributed/communicator/device_moves.h"
#include "distributed/exchange/cut.h"
#include "distributed/exchange/exchange_scheduler.h"
#include "distributed/exchange/message_traffic.h"

namespace wisp {
namespace {

struct Stain {
  std::byte* memory;
  std::byte value;
  WISP_HD void operator()(int64_t i) const { memory[i] = value; }
};

}  // namespace

Rehearsal::Rehearsal(int workers, std::vector<Field> fields, const Make& make, bool fastest,
                     Device device)
    : pool_(device),
      stream_(Stream::on(device)),
      backend_(fastest ? make_backend(pool_, stream_) : make_reference_backend(pool_, stream_)),
      context_{.stream = stream_, .backend = *backend_, .pool = pool_},
      complaint_(context_, {1}, DType::i64),
      fields_(std::move(fields)) {
  WISP_CHECK(workers <= kMostDeviceRanks, "a rehearsal of ", workers, " workers, expected at most ",
             kMostDeviceRanks);
  context_.compute = DType::f32;
  int64_t arena = 0, numel = 0;
  for (const Field& field : fields_) {
    numel += field.numel;
    arena = std::max(arena, field.slices.back().offset + field.slices.back().numel);
  }
  WISP_CHECK(numel <= kMostUnitElements, "a rehearsal of ", numel, " elements, expected at most ",
             kMostUnitElements);
  for (int rank = 0; rank < workers; ++rank) {
    Worker& worker = workers_.emplace_back();
    worker.compressor = make();
    worker.unit.spec = {fields_, numel};
    const Traits traits = worker.compressor->traits();
    worker.unit.gradient = context_.zeros({arena}, DType::f32);
    worker.unit.weight = context_.zeros({arena}, DType::f32);
    if (traits.momentum == Home::compressor)
      worker.unit.momentum = context_.zeros({arena}, DType::f32);
    if (traits.squares) worker.unit.square = context_.zeros({arena}, DType::f32);
    for (const StateSpec& spec : worker.compressor->state(worker.unit.spec, workers)) {
      worker.names.push_back(spec.name);
      worker.state.tensors.push_back(
          context_.zeros(spec.per_element ? Shape{arena} : spec.shape, spec.dtype));
    }
    worker.unit.state = &worker.state;
  }
}

Tensor& Rehearsal::state(int rank, const std::string& name) {
  Worker& worker = at(rank);
  const auto found = std::find(worker.names.begin(), worker.names.end(), name);
  WISP_CHECK(found != worker.names.end(), "the method has no state ", name);
  return worker.state.tensors[static_cast<size_t>(found - worker.names.begin())];
}

int64_t Rehearsal::sent_bytes(int rank, int round) const {
  const Worker& worker = workers_[static_cast<size_t>(rank)];
  int64_t bytes = 0;
  for (const int64_t used : worker.rounds.at(static_cast<size_t>(round)).used) bytes += used;
  return bytes;
}

std::vector<std::byte> Rehearsal::sent(int rank, int round) const {
  const Round& sent = workers_[static_cast<size_t>(rank)].rounds.at(static_cast<size_t>(round));
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < sent.used.size(); ++i) {
    const Tensor out = fetch(stream_, sent.out[i].rows(0, sent.used[i]));
    bytes.insert(bytes.end(), out.raw(), out.raw() + out.bytes());
  }
  return bytes;
}

void Rehearsal::step(StepInfo info) {
  info.ranks = info.summands = workers();
  for (info.rank = 0; info.rank < workers(); ++info.rank) begin(info);
  const Cut cut{.units = {CutUnit{}}, .buckets = {Bucket{.units = {0}}}};
  const UnitRounds unit{.compressed = true, .messages = at(0).messages};
  const std::vector<Slot> slots = make_slots(cut, {&unit, 1}, DType::f32);  // one for each round
  ExchangeScheduler scheduler;
  scheduler.begin(slots, {.units = 1, .all = 1});
  scheduler.ready(0);
  const auto encode_all = [&](int round) {
    for (int rank = 0; rank < workers(); ++rank) encode(rank, round);
    scheduler.encoded(0, round);
  };
  for (Action next = scheduler.next(); next.kind != Action::Kind::done; next = scheduler.next()) {
    const int index = next.index;
    switch (next.kind) {
      case Action::Kind::measure:
        scheduler.measuring(index);
        scheduler.measured(index);
        break;
      case Action::Kind::prepare:
        encode_all(0);
        scheduler.prepared(index);
        break;
      case Action::Kind::start:
        if (slots[static_cast<size_t>(index)].message.kind == Collective::all_reduce) reduce(index);
        scheduler.started(false);
        break;
      case Action::Kind::decode:
        for (int rank = 0; rank < workers(); ++rank) decode(rank, index);
        if (index + 1 < rounds()) encode_all(index + 1);
        scheduler.decoded();
        break;
      case Action::Kind::advance:
      case Action::Kind::wait:
      case Action::Kind::done:
        throw Error("a rehearsal waits, and nothing travels in it");
    }
  }
}

/// Grows memory that is kept from step to step.
void Rehearsal::fit(Tensor& memory, int64_t bytes) const {
  if (memory.defined() && memory.bytes() >= bytes) return;
  memory = {};  // free the old memory first
  memory = context_.empty({bytes}, DType::u8);
}

void Rehearsal::begin(const StepInfo& info) {
  Worker& worker = at(info.rank);
  worker.info = info;
  worker.encode_ms = worker.decode_ms = 0.0;
  fit(worker.scratch, worker.compressor->scratch_bytes(worker.unit.spec, info));
  worker.unit.scratch = worker.scratch.raw();
  const int rounds = worker.compressor->rounds(worker.unit.spec, info);
  worker.rounds.resize(static_cast<size_t>(rounds));
  worker.messages.clear();
  for (int round = 0; round < rounds; ++round)
    worker.messages.push_back(worker.compressor->message(worker.unit.spec, info, round));
}

void Rehearsal::encode(int rank, int round) {
  Worker& worker = at(rank);
  const Message& message = worker.messages[static_cast<size_t>(round)];
  Round& memory = at(rank, round);
  const auto outlets = static_cast<size_t>(outlet_count(message, workers()));
  memory.out.resize(outlets);
  memory.used.assign(outlets, message.bytes);
  if (!memory.counted.device().defined())
    memory.counted = DeviceWords(context_, {workers()}, DType::i64);
  auto* counted = memory.counted.device().data<int64_t>();
  memory.outlets.clear();
  for (size_t i = 0; i < outlets; ++i) {
    fit(memory.out[i], message.bytes);
    parallel_for(stream_, message.bytes, Stain{memory.out[i].raw(), stain_});
    memory.outlets.push_back(
        {memory.out[i].raw(), message.bytes, message.variable ? counted + i : nullptr});
  }
  worker.encode_ms += time_ms(stream_, [&] {
    worker.compressor->encode(context_, worker.unit, worker.info, round, memory.outlets);
  });
  if (message.variable) {
    memory.counted.fetch(stream_);
    stream_.synchronize();
    std::copy_n(memory.counted.host().data<int64_t>(), outlets, memory.used.begin());
  }
  for (const int64_t used : memory.used) {
    WISP_CHECK(0 <= used && used <= message.bytes, "rank ", rank, " encoded ", used, " bytes into ",
               message.bytes);
  }
}

void Rehearsal::reduce(int round) {
  const Message& message = at(0).messages[static_cast<size_t>(round)];
  std::vector<Call> calls;
  for (int rank = 0; rank < workers(); ++rank) {
    Round& memory = at(rank, round);
    fit(memory.sum, message.bytes);
    copy(stream_, memory.out.front().rows(0, message.bytes), memory.sum.rows(0, message.bytes));
    const Bytes sum{memory.sum.raw(), message.bytes};
    calls.push_back(all_reduce_call({&sum, 1}, message.dtype, message.op));
  }
  for (int rank = 0; rank < workers(); ++rank) move_device_share(stream_, calls, rank);
}

void Rehearsal::decode(int rank, int round) {
  Worker& worker = at(rank);
  const Message& own = worker.messages[static_cast<size_t>(round)];
  WISP_CHECK(own.kind != Collective::neighbours, "a compressor has no neighbours");
  std::vector<Payload> payloads;
  auto* complaint = complaint_.device().data<int64_t>();
  if (own.kind == Collective::all_reduce)
    payloads.push_back({-1, at(rank, round).sum.raw(), own.bytes, complaint});
  for (int from = 0; from < workers(); ++from) {
    if (!hears(own, rank, from)) continue;
    const int to = at(from).messages[static_cast<size_t>(round)].to;
    WISP_CHECK(own.kind != Collective::pair || to == rank, "rank ", rank, " waits for rank ", from,
               ", which sends to ", to);
    const Round& sent = at(from, round);
    const size_t outlet = outlet_for(own, rank);
    payloads.push_back({from, sent.out[outlet].raw(), sent.used[outlet], complaint});
  }
  clear(stream_, complaint_.device());
  worker.decode_ms += time_ms(stream_, [&] {
    worker.compressor->decode(context_, worker.unit, worker.info, round, payloads);
  });
  complaint_.fetch(stream_);
  stream_.synchronize();
  const std::string wrong = complaint_in(*complaint_.host().data<int64_t>());
  WISP_CHECK(wrong.empty(), wrong);
}

}  // namespace wisp
