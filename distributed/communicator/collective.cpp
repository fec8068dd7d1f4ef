#include "distributed/communicator/collective.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "distributed/communicator/reduction.h"

namespace wisp {
namespace {

const char* name_of(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::all_reduce:
      return "all_reduce";
    case Call::Kind::all_gather:
      return "all_gather";
    case Call::Kind::all_to_all:
      return "all_to_all";
    case Call::Kind::exchange:
      return "exchange";
    case Call::Kind::barrier:
      return "barrier";
  }
  throw Error("name_of: not a collective");
}

int64_t numel_of(const CallLabel& reduction) { return reduction.bytes / size_of(reduction.dtype); }

/// Index of the first element of a rank's share of n elements.
int64_t share_begin(int64_t n, int64_t rank, int64_t workers) { return n * rank / workers; }

int64_t share_numel(int64_t n, int rank, int workers) {
  return share_begin(n, rank + 1, workers) - share_begin(n, rank, workers);
}

/// A walk through a list of slices as one array of elements.
class Cursor {
 public:
  Cursor(std::span<const Bytes> slices, int64_t element, int64_t skip)
      : slices_(slices), element_(element) {
    skip_empty();
    while (skip > 0) {
      const int64_t step = std::min(skip, run());
      advance(step);
      skip -= step;
    }
  }
  std::byte* data() const { return slices_[slice_].data + offset_; }
  /// Number of elements that follow without a gap.
  int64_t run() const { return (slices_[slice_].bytes - offset_) / element_; }
  void advance(int64_t elements) {
    offset_ += elements * element_;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (slice_ < slices_.size() && offset_ == slices_[slice_].bytes) {
      ++slice_;
      offset_ = 0;
    }
  }

  std::span<const Bytes> slices_;
  int64_t element_;
  size_t slice_ = 0;
  int64_t offset_ = 0;
};

/// Visits the share of rank `rank` among `workers` in runs that are contiguous in all `calls`.
template <class Visit>
void each_run_of(std::span<const Call> calls, int rank, int workers, const Visit& visit) {
  const CallLabel& label = calls[0].label;
  const int64_t n = numel_of(label);
  int64_t left = share_numel(n, rank, workers);
  if (left == 0) return;
  std::vector<Cursor> cursors;
  for (const Call& call : calls)
    cursors.emplace_back(call.in, size_of(label.dtype), share_begin(n, rank, workers));
  std::vector<std::byte*> data(calls.size());
  while (left > 0) {
    int64_t run = left;
    for (const Cursor& cursor : cursors) run = std::min(run, cursor.run());
    for (size_t i = 0; i < calls.size(); ++i) data[i] = cursors[i].data();
    visit(data, run);
    for (Cursor& cursor : cursors) cursor.advance(run);
    left -= run;
  }
}

void reduce_share(std::span<const Call> calls, int rank) {
  const CallLabel& label = calls[0].label;
  each_run(calls, rank, [&](std::span<std::byte* const> by_rank, int64_t n) {
    std::byte* result = by_rank[static_cast<size_t>(rank)];
    reduce_elements(std::vector<const std::byte*>(by_rank.begin(), by_rank.end()), result, n,
                    label.dtype, label.op);
    for (std::byte* other : by_rank) {
      if (other != result)
        std::memcpy(other, result, static_cast<size_t>(n * size_of(label.dtype)));
    }
  });
}

}  // namespace

std::span<const ConstBytes> Call::to(int peer) const {
  const Part part = sends[static_cast<size_t>(peer)];
  return std::span<const ConstBytes>(out).subspan(part.first, part.count);
}

std::span<const Bytes> Call::from(int peer) const {
  const Part part = receives[static_cast<size_t>(peer)];
  return std::span<const Bytes>(in).subspan(part.first, part.count);
}

bool Call::empty() const { return total_bytes(out) + total_bytes(in) == 0; }

std::vector<Bytes> Call::share(int rank, int workers) const {
  std::vector<Bytes> slices;
  each_run_of({this, 1}, rank, workers, [&](std::span<std::byte* const> data, int64_t n) {
    slices.push_back({data.front(), n * size_of(label.dtype)});
  });
  return slices;
}

bool CallLabel::fits(const CallLabel& other) const {
  if (kind != other.kind) return false;
  return !reduces() || (dtype == other.dtype && op == other.op && bytes == other.bytes);
}

std::string CallLabel::str() const {
  std::string text = name_of(kind);
  if (kind != Kind::barrier) text += concat(" of ", bytes, " bytes");
  if (reduces())
    text += concat(" (", wisp::name_of(dtype), ", ", op == ReduceOp::sum ? "sum" : "max", ")");
  return generation > 0 ? concat(text, " in generation ", generation) : text;
}

std::string CallLabel::name(int rank) const {
  return concat(generation > 0 ? "its group's rank " : "rank ", rank);
}

Call all_reduce_call(std::span<const Bytes> data, DType dtype, ReduceOp op) {
  const int64_t element = size_of(dtype);
  for (const Bytes& slice : data) {
    WISP_CHECK(slice.bytes % element == 0, "all_reduce: a slice has ", slice.bytes,
               " bytes, expected whole elements of ", name_of(dtype));
    WISP_CHECK(reinterpret_cast<uintptr_t>(slice.data) % static_cast<uintptr_t>(element) == 0,
               "all_reduce: a slice is not aligned to elements of ", name_of(dtype));
  }
  return {.label = {.kind = Call::Kind::all_reduce,
                    .dtype = dtype,
                    .op = op,
                    .bytes = total_bytes(data)},
          .in = {data.begin(), data.end()}};
}

Call all_gather_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers) {
  const auto count = static_cast<size_t>(workers);
  WISP_CHECK(in.size() == out.size() * count, "all_gather: ", in.size(), " slices in for ",
             out.size(), " out and ", workers, " workers, expected ", out.size() * count);
  Call call{.label = {.kind = Call::Kind::all_gather, .bytes = total_bytes(out)},
            .out = {out.begin(), out.end()},
            .in = {in.begin(), in.end()}};
  for (size_t peer = 0; peer < count; ++peer) {
    call.sends.push_back({0, out.size()});
    call.receives.push_back({peer * out.size(), out.size()});
  }
  return call;
}

Call all_to_all_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers) {
  const auto count = static_cast<size_t>(workers);
  WISP_CHECK(out.size() % count == 0 && in.size() == out.size(), "all_to_all: ", out.size(),
             " slices out and ", in.size(), " in, expected the same multiple of ", workers);
  Call call{.label = {.kind = Call::Kind::all_to_all, .bytes = total_bytes(out)},
            .out = {out.begin(), out.end()},
            .in = {in.begin(), in.end()}};
  const size_t slices = out.size() / count;
  for (size_t peer = 0; peer < count; ++peer) call.sends.push_back({peer * slices, slices});
  call.receives = call.sends;
  return call;
}

Call exchange_call(std::span<const Exchange> messages, int rank, int workers) {
  const std::vector<Call::Part> none(static_cast<size_t>(workers));
  Call call{.label = {.kind = Call::Kind::exchange}, .sends = none, .receives = none};
  for (const Exchange& message : messages) {
    WISP_CHECK(message.peer >= 0 && message.peer < workers && message.peer != rank,
               "exchange: peer is ", message.peer, ", expected another rank below ", workers);
    Call::Part& send = call.sends[static_cast<size_t>(message.peer)];
    if (send.count == 0) send.first = call.out.size();
    WISP_CHECK(send.first + send.count == call.out.size(), "exchange: peer ", message.peer,
               " is named twice; the slices for a peer stand together");
    ++send.count;
    call.receives[static_cast<size_t>(message.peer)] = send;
    call.out.push_back(message.out);
    call.in.push_back(message.in);
    call.label.bytes += message.out.bytes;
  }
  return call;
}

Call barrier_call(int workers) {
  const std::vector<Call::Part> none(static_cast<size_t>(workers));
  return {.sends = none, .receives = none};
}

PendingPtr pass_on(const Call& call, Communicator& communicator) {
  switch (call.label.kind) {
    case Call::Kind::all_reduce:
      return communicator.all_reduce(call.in, call.label.dtype, call.label.op);
    case Call::Kind::all_gather:
      return communicator.all_gather(call.out, call.in);
    case Call::Kind::all_to_all:
      return communicator.all_to_all(call.out, call.in);
    case Call::Kind::exchange: {
      std::vector<Exchange> messages;
      for (int peer = 0; peer < std::ssize(call.sends); ++peer) {
        const std::span<const Bytes> in = call.from(peer);
        for (size_t s = 0; s < in.size(); ++s) messages.push_back({peer, call.to(peer)[s], in[s]});
      }
      return communicator.exchange(messages);
    }
    case Call::Kind::barrier:
      break;
  }
  return communicator.barrier();
}

std::string label_mismatch(const CallLabel& label, const CallLabel& first) {
  return concat("calls ", label.str(), " where ", first.name(0), " calls ", first.str());
}

std::string mail_mismatch(const Call& receiver, int from, std::span<const int64_t> sent_bytes) {
  const std::span<const Bytes> in = receiver.from(from);
  if (sent_bytes.size() != in.size())
    return concat(receiver.label.str(), " expects ", in.size(), " slices from ",
                  receiver.label.name(from), ", which sends ", sent_bytes.size());
  for (size_t s = 0; s < in.size(); ++s) {
    if (in[s].bytes != sent_bytes[s])
      return concat(receiver.label.str(), " expects ", in[s].bytes, " bytes in slice ", s, " from ",
                    receiver.label.name(from), ", which sends ", sent_bytes[s]);
  }
  return {};
}

Mismatch find_mismatch(std::span<const Call> calls) {
  const int workers = static_cast<int>(calls.size());
  const CallLabel& first = calls[0].label;
  const auto on_device =
      std::find_if(calls.begin(), calls.end(), [](const Call& call) { return call.on_device; });
  for (int rank = 1; rank < workers; ++rank) {
    const CallLabel& label = calls[static_cast<size_t>(rank)].label;
    if (!label.fits(first)) return {rank, label_mismatch(label, first)};
  }
  for (int rank = 0; on_device != calls.end() && rank < workers; ++rank) {
    const Call& call = calls[static_cast<size_t>(rank)];
    if (!call.on_device && !call.empty())
      return {rank, concat(call.label.str(), " in host memory, but ",
                           call.label.name(static_cast<int>(on_device - calls.begin())),
                           " passes device memory")};
  }
  if (first.reduces()) return {};
  std::vector<int64_t> bytes;
  for (int to = 0; to < workers; ++to) {
    for (int from = 0; from < workers; ++from) {
      bytes.clear();
      for (const ConstBytes& slice : calls[static_cast<size_t>(from)].to(to))
        bytes.push_back(slice.bytes);
      if (std::string why = mail_mismatch(calls[static_cast<size_t>(to)], from, bytes);
          !why.empty())
        return {to, std::move(why)};
    }
  }
  return {};
}

Traffic traffic_of(const Call& call, int rank, int workers) {
  const CallLabel& label = call.label;
  const int others = workers - 1;
  if (label.reduces()) {
    // It sends the others' shares, then the sum of its own to all of them, and receives as much.
    const int64_t own = share_numel(numel_of(label), rank, workers) * size_of(label.dtype);
    const int64_t moved = label.bytes - own + others * own;
    return {moved, moved, reduction_steps(others).count};
  }
  int peers = others;
  if (label.kind == Call::Kind::exchange) {
    peers = static_cast<int>(std::count_if(call.sends.begin(), call.sends.end(),
                                           [](const Call::Part& part) { return part.count > 0; }));
  }
  Traffic traffic{.steps = direct_steps(peers).count};
  for (int peer = 0; peer < workers; ++peer) {
    if (peer == rank) continue;
    traffic.sent += total_bytes(call.to(peer));
    traffic.received += total_bytes(call.from(peer));
  }
  return traffic;
}

void each_run(std::span<const Call> calls, int rank, const VisitRun& visit) {
  each_run_of(calls, rank, static_cast<int>(calls.size()), visit);
}

void each_mail(std::span<const Call> calls, int rank, const VisitMail& visit) {
  const Call& own = calls[static_cast<size_t>(rank)];
  for (size_t peer = 0; peer < calls.size(); ++peer)
    each_mail(calls[peer].to(rank), own.from(static_cast<int>(peer)), visit);
}

void each_mail(std::span<const ConstBytes> out, std::span<const Bytes> in, const VisitMail& visit) {
  for (size_t s = 0; s < in.size(); ++s) {
    if (in[s].bytes > 0 && in[s].data != out[s].data) visit(out[s], in[s]);
  }
}

void copy_mail(const ConstBytes& from, const Bytes& to) {
  std::memcpy(to.data, from.data, static_cast<size_t>(to.bytes));
}

void move_share(std::span<const Call> calls, int rank) noexcept {
  if (calls[static_cast<size_t>(rank)].label.reduces()) return reduce_share(calls, rank);
  each_mail(calls, rank, copy_mail);
}

}  // namespace wisp
