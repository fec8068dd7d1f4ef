// A soak test: random collectives with random delays over four threads, or over the processes that
// mpirun started, of all ranks and of every second rank. It checks every word that arrives.
//
//   soak COUNT [FAULT KIND]
//
// With a FAULT, rank 2 fails in a collective of KIND (0 to 4, as in Call::Kind): it dies in the
// middle of it, stalls, throws, calls another collective, or ends a group of every second rank; or
// it is absent (a process) while rank 0 waits for all, rank 1 for rank 3, and rank 3 for rank 2. On
// any failure the program prints the cause and exits with status 1.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "distributed/launch.h"
#include "tests/support/random_collective.h"

namespace wisp {
namespace {

constexpr int kThreads = 4, kCulprit = 2, kFaultless = 20;  // kFaultless collectives before a fault
constexpr double kFaultTimeoutS = 0.5, kGroupsTimeoutS = 3.0;  // the latter for "absent"

struct Fault {
  std::string name;
  Call::Kind kind = Call::Kind::barrier;
};

void sleep_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

/// Falls silent. A process stays so until it is killed. A thread cannot be killed and must end, so
/// it sleeps for three timeouts.
void stall() {
  while (world().processes()) pause();
  sleep_ms(3e3 * kFaultTimeoutS);
}

void die() {
  if (world().processes()) std::raise(SIGKILL);
  throw Error("died");
}

void go_wrong(const Fault& fault, const Draw& draw, Communicator& comm, std::mt19937& pauses) {
  if (fault.name == "throw") throw Error("wheel came off");
  if (fault.name == "stall") stall();
  if (fault.name == "group") comm.abort("wheel came off");
  if (fault.name == "differ" || fault.name == "group") {
    const bool barrier = draw.kind == Call::Kind::barrier;
    (barrier ? comm.exchange({}) : comm.barrier())->wait();
  }
  wrong_words(draw, comm, pauses, die);
}

/// A draw of the kind, the same on all ranks.
Draw draw_of(Call::Kind kind, int ranks) {
  for (std::mt19937 random(1);;)
    if (const Draw draw(random, ranks); draw.kind == kind) return draw;
}

/// Each rank waits in another group.
void wait_in_groups(Communicator& comm, Call::Kind kind) {
  const int rank = comm.rank();
  const auto odd = comm.split(rank % 2), last = comm.split(int{rank > 1});
  if (rank == kCulprit) stall();
  Communicator& within = rank == 0 ? comm : rank == 1 ? *odd : *last;
  std::mt19937 pauses(2);
  wrong_words(draw_of(kind, within.size()), within, pauses);
}

void work(Worker& worker, int64_t count, const Fault& fault) {
  if (fault.name == "absent") return wait_in_groups(worker.communicator, fault.kind);
  const std::unique_ptr<Communicator> half = worker.communicator.split(worker.rank % 2);
  Communicator& comm = fault.name == "group" ? *half : worker.communicator;
  std::mt19937 shared(1), of_half(2), pauses(static_cast<unsigned>(worker.rank) + 2);
  int64_t wrong = 0;
  const auto in_half = [&] {
    if (pauses() % 64 == 0) sleep_ms(static_cast<double>(pauses() % 1000) * 1e-3);
    wrong += wrong_words(Draw(of_half, half->size()), *half, pauses);
  };
  for (int64_t i = 0; i < count; ++i) {
    const Draw draw(shared, comm.size());
    if (worker.rank == kCulprit && !fault.name.empty() && i >= kFaultless &&
        draw.kind == fault.kind)
      go_wrong(fault, draw, comm, pauses);
    if (pauses() % 64 == 0) sleep_ms(static_cast<double>(pauses() % 1000) * 1e-3);
    const bool both = fault.name.empty() && draw.seed % 4 == 0;  // the same on all ranks
    wrong += wrong_words(draw, comm, pauses, both ? in_half : std::function<void()>());
  }
  WISP_CHECK(wrong == 0, wrong, " words arrived wrong");
}

void soak(int argc, char** argv) {
  WISP_CHECK(argc == 2 || argc == 4,
             "usage: soak COUNT [die|stall|throw|differ|group|absent KIND]");
  const int64_t count = std::stoll(argv[1]);
  Fault fault;
  if (argc == 4) fault = {argv[2], static_cast<Call::Kind>(std::stoi(argv[3]))};
  LaunchOptions options{.threads = 1};
  if (!fault.name.empty())
    options.timeout_s = fault.name == "absent" ? kGroupsTimeoutS : kFaultTimeoutS;
  std::signal(SIGTERM, SIG_IGN);  // mpirun sends it when a rank dies, before the cause is printed
  const int workers = world().processes() ? world().size : kThreads;
  run_workers(workers, options, [&](Worker& worker) { work(worker, count, fault); });
  if (world().rank == 0)
    std::printf("%lld collectives over %d %s: all words right\n", static_cast<long long>(count),
                workers, world().processes() ? "processes" : "threads");
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  try {
    wisp::soak(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", wisp::last_words(error.what()).c_str());
    return 1;
  }
}
