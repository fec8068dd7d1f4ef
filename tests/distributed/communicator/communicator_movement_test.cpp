// Tests of the collectives that move data between ranks unchanged.
#include <gtest/gtest.h>

#include "tests/support/ranks.h"

namespace wisp {
namespace {

TEST(Communicator, AllGatherBringsEveryRanksSlicesWhateverTheirSizes) {
  constexpr int kSlices = 3;
  for (const int workers : worlds()) {
    run_well(workers, [&](Communicator& comm) {
      std::vector<Memory> sent, got, wanted;
      for (int s = 0; s < kSlices; ++s) sent.push_back(mail(comm.rank(), -1, s));
      for (int from = 0; from < workers; ++from) {
        for (int s = 0; s < kSlices; ++s) wanted.push_back(mail(from, -1, s));
      }
      for (const Memory& memory : wanted) got.emplace_back(memory.size());
      std::vector<ConstBytes> out;
      std::vector<Bytes> in;
      int64_t own = 0, all = 0;
      for (const Memory& memory : sent) out.push_back(bytes_of(memory)), own += out.back().bytes;
      for (Memory& memory : got) in.push_back(bytes_of(memory)), all += in.back().bytes;
      const Transfer transfer = comm.all_gather(out, in)->wait();
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(transfer.sent, own * (workers - 1));
      EXPECT_EQ(transfer.received, all - own);
    });
  }
}

TEST(Communicator, AllToAllBringsEachRankItsOwnMail) {
  constexpr int kSlices = 2;
  for (const int workers : worlds()) {
    run_well(workers, [&](Communicator& comm) {
      std::vector<Memory> sent, got, wanted;
      int64_t to_others = 0, from_others = 0;
      for (int peer = 0; peer < workers; ++peer) {
        for (int s = 0; s < kSlices; ++s) {
          sent.push_back(mail(comm.rank(), peer, s));
          wanted.push_back(mail(peer, comm.rank(), s));
          got.emplace_back(wanted.back().size());
          if (peer == comm.rank()) continue;
          to_others += static_cast<int64_t>(sent.back().size());
          from_others += static_cast<int64_t>(wanted.back().size());
        }
      }
      std::vector<ConstBytes> out;
      std::vector<Bytes> in;
      for (const Memory& memory : sent) out.push_back(bytes_of(memory));
      for (Memory& memory : got) in.push_back(bytes_of(memory));
      const Transfer transfer = comm.all_to_all(out, in)->wait();
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(transfer.sent, to_others);
      EXPECT_EQ(transfer.received, from_others);
    });
  }
}

/// A rank with something to say to all others says it in an all-gather to which they add nothing.
TEST(Communicator, AllGatherBringsOneRanksDataWhereTheOthersHaveNone) {
  for (const int workers : worlds()) {
    for (int root = 0; root < workers; ++root) {
      std::vector<Memory> data = inputs_of(workers, DType::u8, 1001);
      const Memory expected = data[static_cast<size_t>(root)];
      run_well(workers, [&](Communicator& comm) {
        Memory& own = data[static_cast<size_t>(comm.rank())];
        const std::vector<Bytes> slices = cut(own, 1, {0, 13, 500});
        std::vector<ConstBytes> out(slices.size());
        std::vector<Bytes> in(slices.size() * static_cast<size_t>(workers));
        for (size_t s = 0; s < slices.size(); ++s) {
          if (comm.rank() == root) out[s] = {slices[s].data, slices[s].bytes};
          in[static_cast<size_t>(root) * slices.size() + s] = slices[s];
        }
        const Transfer transfer = comm.all_gather(out, in)->wait();
        EXPECT_EQ(transfer.sent, comm.rank() == root ? 1001 * (workers - 1) : 0);
        EXPECT_EQ(transfer.received, comm.rank() == root ? 0 : 1001);
        EXPECT_EQ(own, expected);
      });
    }
  }
}

TEST(Communicator, ExchangeServesPairsWhileOthersAreIdle) {
  for (const int workers : worlds()) {
    run_well(workers, [&](Communicator& comm) {  // 0 -> 1, 2 <-> 3, …; an odd last rank is idle
      const int peer = comm.rank() ^ 1;
      const bool idle = peer >= workers;
      const Memory sent = idle || comm.rank() == 1 ? Memory() : mail(comm.rank(), peer, 0);
      const Memory wanted = idle || comm.rank() == 0 ? Memory() : mail(peer, comm.rank(), 0);
      Memory got(wanted.size());
      const Exchange message{peer, bytes_of(sent), bytes_of(got)};
      const std::span<const Exchange> messages(&message, idle ? 0 : 1);
      const Transfer transfer = comm.exchange(messages)->wait();
      EXPECT_EQ(got, wanted);
      EXPECT_EQ(transfer.sent, static_cast<int64_t>(sent.size()));
      EXPECT_EQ(transfer.received, static_cast<int64_t>(wanted.size()));
    });
  }
}

TEST(Communicator, ExchangeCarriesSeveralSlicesForEachPeer) {
  for (const int workers : worlds()) {
    run_well(workers, [&](Communicator& comm) {  // all pairs, two slices each way
      std::vector<Memory> sent, wanted, got;
      std::vector<Exchange> messages;
      for (int i = 0; i < 2 * workers; ++i) {
        if (i / 2 == comm.rank()) continue;
        sent.push_back(mail(comm.rank(), i / 2, i % 2));
        wanted.push_back(mail(i / 2, comm.rank(), i % 2));
        got.emplace_back(wanted.back().size());
      }
      int64_t bytes = 0;
      for (size_t i = 0; i < sent.size(); ++i) {
        const int other = static_cast<int>(i / 2);
        messages.push_back(
            {other + (other >= comm.rank()), bytes_of(std::as_const(sent[i])), bytes_of(got[i])});
        bytes += static_cast<int64_t>(sent[i].size());
      }
      EXPECT_EQ(comm.exchange(messages)->wait().sent, bytes);
      EXPECT_EQ(got, wanted);
    });
  }
}

TEST(Communicator, ExchangeServesSeveralPeersAtOnce) {
  for (const int workers : worlds()) {
    if (workers < 3) continue;
    run_well(workers, [&](Communicator& comm) {  // both neighbours in a ring
      const int peers[] = {(comm.rank() + 1) % workers, (comm.rank() + workers - 1) % workers};
      std::vector<Memory> sent, wanted, got;
      std::vector<Exchange> messages;
      for (const int peer : peers) {
        sent.push_back(mail(comm.rank(), peer, 0));
        wanted.push_back(mail(peer, comm.rank(), 0));
        got.emplace_back(wanted.back().size());
      }
      for (size_t i = 0; i < 2; ++i)
        messages.push_back({peers[i], bytes_of(std::as_const(sent[i])), bytes_of(got[i])});
      comm.exchange(messages)->wait();
      EXPECT_EQ(got, wanted);
    });
  }
}

}  // namespace
}  // namespace wisp
