#include "apps/commands/stop_signals.h"

#include <atomic>
#include <csignal>

namespace wisp {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second acts by default
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  handle(remember);
}

StopSignals::~StopSignals() { handle(SIG_DFL); }

int StopSignals::received() { return first_signal; }

}  // namespace wisp
