// Compares the bytes that the communicator counts with those of the loopback device, by mpirun over
// TCP in a network of its own:
//
//   unshare -n sh -c 'ip link set lo up; mpirun --mca btl tcp,self -n 4 wire_bytes MESSAGE'
//
// MESSAGE is how many bytes each rank sends each other in a round. Prints counted bytes, the
// device's, and messages.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "distributed/launch.h"

namespace wisp {
namespace {

constexpr int kRounds = 50;

/// Bytes that the loopback device has carried.
int64_t loopback_bytes() {
  std::ifstream devices("/proc/net/dev");
  for (std::string word; devices >> word;) {
    int64_t bytes = 0;
    if (word == "lo:" && devices >> bytes) return bytes;
  }
  throw Error("/proc/net/dev has no lo");
}

void measure(Worker& worker, int64_t message) {
  Communicator& comm = worker.communicator;
  const int64_t bytes = message * comm.size();
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  const Bytes slice{data.data(), bytes};
  comm.all_reduce({&slice, 1}, DType::u8, ReduceOp::sum)->wait();  // connects the ranks
  comm.barrier()->wait();
  const int64_t before = loopback_bytes();
  comm.barrier()->wait();
  int64_t counted = 0;
  for (int round = 0; round < kRounds; ++round)
    counted += comm.all_reduce({&slice, 1}, DType::u8, ReduceOp::sum)->wait().sent;
  comm.barrier()->wait();
  const int64_t carried = loopback_bytes() - before;
  const Bytes total{reinterpret_cast<std::byte*>(&counted), sizeof counted};
  comm.all_reduce({&total, 1}, DType::i64, ReduceOp::sum)->wait();
  const int64_t messages = 2LL * kRounds * comm.size() * (comm.size() - 1);
  if (worker.rank == 0)
    std::printf("%lld %lld %lld\n", static_cast<long long>(counted),
                static_cast<long long>(carried), static_cast<long long>(messages));
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  try {
    WISP_CHECK(argc == 2, "usage: wire_bytes MESSAGE");
    wisp::run_workers(wisp::world().size, {.threads = 1},
                      [&](wisp::Worker& worker) { wisp::measure(worker, std::stoll(argv[1])); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", wisp::last_words(error.what()).c_str());
    return 1;
  }
}
