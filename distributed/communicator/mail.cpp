#include "distributed/communicator/mail.h"

#include <cstring>

#include "distributed/communicator/reduction.h"

namespace wisp {
namespace {

struct Head {
  CallLabel label;
  int64_t slices = 0;  // number of sizes that follow, a word each; the data is behind them
};
constexpr int64_t kHeadBytes = sizeof(Head);
static_assert(kHeadBytes == Mail::kLeastBytes);
static_assert(kHeadBytes % 8 == 0, "the data behind it is read as elements of up to 8 bytes");

Head head_of(ConstBytes message) {
  Head head;
  std::memcpy(&head, message.data, sizeof(Head));
  return head;
}

std::vector<int64_t> sizes_in(ConstBytes message) {
  std::vector<int64_t> sizes(static_cast<size_t>(head_of(message).slices));
  if (!sizes.empty())
    std::memcpy(sizes.data(), message.data + kHeadBytes, sizes.size() * sizeof(int64_t));
  return sizes;
}

const std::byte* data_in(ConstBytes message) {
  return message.data + kHeadBytes + head_of(message).slices * int64_t{sizeof(int64_t)};
}

void unpack(const std::byte* data, std::span<const Bytes> slices) {
  for (const Bytes& slice : slices) {
    if (slice.bytes > 0) std::memcpy(slice.data, data, static_cast<size_t>(slice.bytes));
    data += slice.bytes;
  }
}

}  // namespace

bool Mail::same_for_all(int round) const {
  if (call_.label.reduces()) return round == 1;
  return call_.label.kind == Call::Kind::all_gather || call_.label.kind == Call::Kind::barrier;
}

ConstBytes Mail::write(int round, int peer, std::vector<std::byte>& memory) const {
  std::vector<ConstBytes> slices;
  Head head{call_.label};
  if (call_.label.reduces()) {
    const std::vector<Bytes> share = call_.share(round == 0 ? peer : rank_, workers_);
    slices.assign(share.begin(), share.end());
  } else {
    const std::span<const ConstBytes> mail = call_.to(peer);
    slices.assign(mail.begin(), mail.end());
    head.slices = static_cast<int64_t>(slices.size());
  }
  const int64_t bytes = kHeadBytes + head.slices * int64_t{sizeof(int64_t)} + total_bytes(slices);
  if (memory.size() < static_cast<size_t>(bytes)) memory.resize(static_cast<size_t>(bytes));
  std::byte* at = memory.data();
  const auto put = [&at](const void* data, int64_t size) {
    if (size > 0) std::memcpy(at, data, static_cast<size_t>(size));
    at += size;
  };
  put(&head, kHeadBytes);
  for (int64_t s = 0; s < head.slices; ++s)
    put(&slices[static_cast<size_t>(s)].bytes, sizeof(int64_t));
  for (const ConstBytes& slice : slices) put(slice.data, slice.bytes);
  return {memory.data(), bytes};
}

std::optional<Mismatch> Mail::check_own() const {
  if (call_.label.reduces()) return {};
  std::string why = mail_mismatch(call_, rank_, sizes_of(call_.to(rank_)));
  if (why.empty()) return {};
  return Mismatch{rank_, std::move(why)};
}

std::optional<Mismatch> Mail::check(int round, int peer, ConstBytes message) const {
  if (message.bytes < kHeadBytes)
    return Mismatch{peer, "sent what no collective sends; do all ranks run the same program?"};
  const Head head = head_of(message);
  if (head.label.generation != call_.label.generation)
    return Mismatch{peer, concat("sent a message of generation ", head.label.generation,
                                 ", expected one of generation ", call_.label.generation)};
  if (!head.label.fits(call_.label)) {
    if (peer == 0) return Mismatch{rank_, label_mismatch(call_.label, head.label)};
    if (rank_ == 0) return Mismatch{peer, label_mismatch(head.label, call_.label)};
    return Mismatch{-1, {}};
  }
  int64_t expected = kHeadBytes;
  if (call_.label.reduces()) {
    expected += total_bytes(call_.share(round == 0 ? rank_ : peer, workers_));
  } else {
    expected += head.slices * int64_t{sizeof(int64_t)};
    if (message.bytes >= expected) {
      if (std::string why = mail_mismatch(call_, peer, sizes_in(message)); !why.empty())
        return Mismatch{rank_, std::move(why)};
      expected += total_bytes(call_.from(peer));
    }
  }
  if (message.bytes == expected) return {};
  return Mismatch{peer, concat("sent ", message.bytes, " bytes in its ", call_.label.str(),
                               ", expected ", expected)};
}

void Mail::read(int round, std::span<const ConstBytes> messages) {
  if (call_.label.reduces() && round == 0) return reduce(messages);
  for (int peer = 0; peer < workers_; ++peer) {
    if (peer == rank_) continue;
    const std::byte* data = data_in(messages[static_cast<size_t>(peer)]);
    if (call_.label.reduces()) {
      unpack(data, call_.share(peer, workers_));
    } else {
      unpack(data, call_.from(peer));
    }
  }
  if (!call_.label.reduces()) each_mail(call_.to(rank_), call_.from(rank_), copy_mail);
}

/// Reduces this rank's share over all ranks, in rank order.
void Mail::reduce(std::span<const ConstBytes> messages) {
  std::vector<const std::byte*> sources(static_cast<size_t>(workers_));
  int64_t done = 0;
  for (const Bytes& slice : call_.share(rank_, workers_)) {
    for (int rank = 0; rank < workers_; ++rank) {
      const auto index = static_cast<size_t>(rank);
      sources[index] = rank == rank_ ? slice.data : data_in(messages[index]) + done;
    }
    reduce_elements(sources, slice.data, slice.bytes / size_of(call_.label.dtype),
                    call_.label.dtype, call_.label.op);
    done += slice.bytes;
  }
}

}  // namespace wisp
