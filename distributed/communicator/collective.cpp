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

template <class AnyBytes>
int64_t total_bytes(std::span<const AnyBytes> slices) {
  int64_t total = 0;
  for (const AnyBytes& slice : slices) total += slice.bytes;
  return total;
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

void receive_mail(std::span<const Call> calls, int rank) {
  each_mail(calls, rank, [](const ConstBytes& from, const Bytes& to) {
    std::memcpy(to.data, from.data, static_cast<size_t>(to.bytes));
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

bool Call::empty() const {
  return total_bytes(std::span<const ConstBytes>(out)) + total_bytes(std::span<const Bytes>(in)) ==
         0;
}

std::vector<Bytes> Call::share(int rank, int workers) const {
  const int64_t element = size_of(label.dtype);
  const int64_t n = numel_of(label);
  int64_t left = share_numel(n, rank, workers);
  std::vector<Bytes> slices;
  if (left == 0) return slices;
  for (Cursor cursor(in, element, share_begin(n, rank, workers)); left > 0;) {
    const int64_t run = std::min(left, cursor.run());
    slices.push_back({cursor.data(), run * element});
    cursor.advance(run);
    left -= run;
  }
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
  Call call;
  call.label = {
      .kind = Call::Kind::all_reduce, .dtype = dtype, .op = op, .bytes = total_bytes(data)};
  call.in.assign(data.begin(), data.end());
  return call;
}

Call all_gather_call(std::span<const ConstBytes> out, std::span<const Bytes> in, int workers) {
  const auto count = static_cast<size_t>(workers);
  WISP_CHECK(in.size() == out.size() * count, "all_gather: ", in.size(), " slices in for ",
             out.size(), " out and ", workers, " workers, expected ", out.size() * count);
  Call call;
  call.label.kind = Call::Kind::all_gather;
  call.label.bytes = total_bytes(out);
  call.out.assign(out.begin(), out.end());
  call.in.assign(in.begin(), in.end());
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
  Call call;
  call.label.kind = Call::Kind::all_to_all;
  call.label.bytes = total_bytes(out);
  call.out.assign(out.begin(), out.end());
  call.in.assign(in.begin(), in.end());
  const size_t slices = out.size() / count;
  for (size_t peer = 0; peer < count; ++peer) call.sends.push_back({peer * slices, slices});
  call.receives = call.sends;
  return call;
}

Call exchange_call(std::span<const Exchange> messages, int rank, int workers) {
  Call call;
  call.label.kind = Call::Kind::exchange;
  call.sends.resize(static_cast<size_t>(workers));
  call.receives.resize(static_cast<size_t>(workers));
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
  Call call;
  call.sends.resize(static_cast<size_t>(workers));
  call.receives.resize(static_cast<size_t>(workers));
  return call;
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
  const CallLabel& label = calls[0].label;
  const int64_t element = size_of(label.dtype);
  const int64_t n = numel_of(label);
  const int workers = static_cast<int>(calls.size());
  int64_t left = share_numel(n, rank, workers);
  if (left == 0) return;
  std::vector<Cursor> cursors;
  for (const Call& call : calls)
    cursors.emplace_back(call.in, element, share_begin(n, rank, workers));
  std::vector<std::byte*> by_rank(calls.size());
  while (left > 0) {
    int64_t run = left;
    for (const Cursor& cursor : cursors) run = std::min(run, cursor.run());
    for (size_t r = 0; r < calls.size(); ++r) by_rank[r] = cursors[r].data();
    visit(by_rank, run);
    for (Cursor& cursor : cursors) cursor.advance(run);
    left -= run;
  }
}

void each_mail(std::span<const Call> calls, int rank, const VisitMail& visit) {
  const Call& own = calls[static_cast<size_t>(rank)];
  for (size_t peer = 0; peer < calls.size(); ++peer) {
    const std::span<const ConstBytes> out = calls[peer].to(rank);
    const std::span<const Bytes> in = own.from(static_cast<int>(peer));
    for (size_t s = 0; s < in.size(); ++s) {
      if (in[s].bytes > 0 && in[s].data != out[s].data) visit(out[s], in[s]);
    }
  }
}

void move_share(std::span<const Call> calls, int rank) noexcept {
  if (calls[static_cast<size_t>(rank)].label.reduces()) {
    reduce_share(calls, rank);
  } else {
    receive_mail(calls, rank);
  }
}

}  // namespace wisp
