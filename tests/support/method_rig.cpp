#include "tests/support/method_rig.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "distributed/reduction.h"
#include "distributed/schedule.h"

namespace wisp {

MethodRig::MethodRig(int workers, std::vector<Field> fields, const Make& make)
    : fields_(std::move(fields)) {
  int64_t arena = 0, numel = 0;
  for (const Field& field : fields_) {
    numel += field.numel;
    arena = std::max(arena, field.slices.back().offset + field.slices.back().numel);
  }
  for (int rank = 0; rank < workers; ++rank) {
    Worker& worker = workers_.emplace_back();
    worker.compressor = make();
    worker.unit.spec = {fields_, numel};
    for (Tensor* tensor :
         {&worker.unit.gradient, &worker.unit.weight, &worker.unit.momentum, &worker.unit.square})
      *tensor = Tensor({arena}, DType::f32);
    for (const StateSpec& spec : worker.compressor->state(worker.unit.spec, workers)) {
      worker.names.push_back(spec.name);
      worker.state.tensors.push_back(
          Tensor(spec.per_element ? Shape{arena} : spec.shape, spec.dtype));
    }
    worker.unit.state = &worker.state;
  }
}

Tensor& MethodRig::state(int rank, const std::string& name) {
  Worker& worker = at(rank);
  const auto found = std::find(worker.names.begin(), worker.names.end(), name);
  WISP_CHECK(found != worker.names.end(), "the method has no state ", name);
  return worker.state.tensors[static_cast<size_t>(found - worker.names.begin())];
}

const std::vector<std::byte>& MethodRig::sent(int rank, int round) const {
  return workers_[static_cast<size_t>(rank)].history.at(static_cast<size_t>(round));
}

void MethodRig::step(StepInfo info) {
  info.workers = workers();
  std::vector<StepInfo> infos(workers_.size(), info);
  int rounds = 0;
  for (int rank = 0; rank < workers(); ++rank) {
    StepInfo& own = infos[static_cast<size_t>(rank)];
    own.rank = rank;
    Worker& worker = at(rank);
    worker.history.clear();
    worker.scratch = Tensor({worker.compressor->scratch_bytes(worker.unit.spec, own)}, DType::u8);
    worker.unit.scratch = worker.scratch.raw();
    rounds = worker.compressor->rounds(worker.unit.spec, own);
  }
  for (int round = 0; round < rounds; ++round) {
    std::vector<Message> messages;
    for (int rank = 0; rank < workers(); ++rank) {
      const StepInfo& own = infos[static_cast<size_t>(rank)];
      messages.push_back(at(rank).compressor->message(at(rank).unit.spec, own, round));
      encode(rank, own, round, messages.back());
    }
    if (messages[0].kind == Collective::all_reduce) {
      std::vector<const std::byte*> sources;
      for (Worker& worker : workers_) sources.push_back(worker.out[0].raw());
      Tensor sum({messages[0].bytes}, DType::u8);
      reduce_elements(sources, sum.raw(), messages[0].bytes / size_of(messages[0].dtype),
                      messages[0].dtype, messages[0].op);
      for (Worker& worker : workers_)
        std::memcpy(worker.out[0].raw(), sum.raw(), static_cast<size_t>(sum.bytes()));
    }
    for (int rank = 0; rank < workers(); ++rank)
      decode(rank, infos[static_cast<size_t>(rank)], round, messages);
  }
}

void MethodRig::encode(int rank, const StepInfo& info, int round, const Message& message) {
  Worker& worker = at(rank);
  const int outlets = outlet_count(message, rank, workers());
  worker.out.clear();
  worker.used.assign(static_cast<size_t>(outlets), message.bytes);
  std::vector<Outlet> list;
  for (int i = 0; i < outlets; ++i) {
    worker.out.push_back(Tensor({message.bytes}, DType::u8));
    list.push_back({worker.out.back().raw(), message.bytes,
                    message.variable ? &worker.used[static_cast<size_t>(i)] : nullptr});
  }
  worker.compressor->encode(worker.test.context, worker.unit, info, round, list);
  std::vector<std::byte>& history = worker.history.emplace_back();
  for (size_t i = 0; i < worker.out.size(); ++i) {
    WISP_CHECK(0 <= worker.used[i] && worker.used[i] <= message.bytes, "rank ", rank, " encoded ",
               worker.used[i], " bytes into ", message.bytes);
    history.insert(history.end(), worker.out[i].raw(), worker.out[i].raw() + worker.used[i]);
  }
}

void MethodRig::decode(int rank, const StepInfo& info, int round,
                       const std::vector<Message>& messages) {
  std::vector<Payload> payloads;
  const auto take = [&](int from, size_t outlet) {
    const Worker& sender = workers_[static_cast<size_t>(from)];
    payloads.push_back({from, sender.out[outlet].raw(), sender.used[outlet]});
  };
  const Message& own = messages[static_cast<size_t>(rank)];
  switch (own.kind) {
    case Collective::none:
      break;
    case Collective::all_reduce:
      payloads.push_back({-1, at(rank).out[0].raw(), own.bytes});
      break;
    case Collective::all_gather:
      for (int from = 0; from < workers(); ++from) take(from, 0);
      break;
    case Collective::all_to_all:
      for (int from = 0; from < workers(); ++from) take(from, static_cast<size_t>(rank));
      break;
    case Collective::broadcast:
      take(own.root, 0);
      break;
    case Collective::pair:
      if (own.from < 0) break;
      WISP_CHECK(messages[static_cast<size_t>(own.from)].to == rank, "rank ", rank,
                 " waits for rank ", own.from, ", which sends to ",
                 messages[static_cast<size_t>(own.from)].to);
      take(own.from, 0);
      break;
    case Collective::neighbours:
      throw Error("a compressor has no neighbours");
  }
  at(rank).compressor->decode(at(rank).test.context, at(rank).unit, info, round, payloads);
}

}  // namespace wisp
