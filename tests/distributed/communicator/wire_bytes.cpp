// A program that prints the bytes that are counted beside those that the loopback device carries.
// mpirun starts it over TCP in a separate network namespace:
//
//   unshare -n sh -c 'ip link set lo up; mpirun --mca btl tcp,self -n 4 wire_bytes MESSAGE'
//
// If MESSAGE is a number, each rank sends each other two messages of that many bytes in a round.
// The program prints the bytes that the communicators counted, the bytes that the device carried,
// and the number of messages. If MESSAGE is "methods", it measures three steps of each method. For
// each step every rank prints the method's name, the step, and the bytes that its synchronizer
// counted. Rank 0 adds the bytes that the device carried; the other ranks print 0.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "distributed/launch.h"
#include "tests/support/tiny_run.h"

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

/// A run whose model is one large matrix, so that its messages have 64 KiB or more.
Config run_of(const std::string& method) {
  Overrides run =
      method_overrides(method) + Overrides{concat("workers=", world().size), "train.batch=30",
                                           "compression.bucket_bytes=100000000"};
  if (method != "local_sgd") run.push_back("compression.guard=false");  // it has no guard
  if (method_knows(method, "local_sgd.period")) run.push_back("local_sgd.period=1");
  if (method_knows(method, "compression.rank")) run.push_back("compression.rank=64");
  return tiny_config_of("model.name = \"mlp\"\nmodel.hidden = [768]", run);
}

void measure(const std::string& method) {
  with_replicas(run_of(method), [&](ReplicaTest& test) {
    const auto carried_by = [&](int64_t step, int64_t count) {
      test.replica.barrier();
      const int64_t before = loopback_bytes();
      test.replica.barrier();
      test.steps(step, count);
      test.replica.barrier();
      return loopback_bytes() - before;
    };
    test.steps(0, 3);  // connects the ranks and completes any warm-up
    for (int64_t step = 3; step < 6; ++step) {
      const int64_t barriers = carried_by(step, 0);
      const int64_t carried = carried_by(step, 1) - barriers;
      std::printf("%s %lld %lld %lld\n", method.c_str(), static_cast<long long>(step),
                  static_cast<long long>(test.replica.synchronizer().cost().bytes_sent),
                  static_cast<long long>(test.replica.rank() == 0 ? carried : 0));
    }
  });
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  try {
    WISP_CHECK(argc == 2, "usage: wire_bytes MESSAGE | methods");
    const std::string what = argv[1];
    if (what == "methods") {
      for (const std::string& method : wisp::method_names()) wisp::measure(method);
      return 0;
    }
    wisp::run_workers(wisp::world().size, {.threads = 1},
                      [&](wisp::Worker& worker) { wisp::measure(worker, std::stoll(what)); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", wisp::last_words(error.what()).c_str());
    return 1;
  }
}
