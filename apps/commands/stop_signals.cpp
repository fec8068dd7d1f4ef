#include "apps/commands/stop_signals.h"

#include <atomic>
#include <csignal>

#include "core/base/stopping_signals.h"

namespace wisp {
namespace {

// Signal handlers can only use globals.
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  for (const int signal : stopping_signals()) {
    struct sigaction action {
    }, before{};
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART;
    // Other signals may come several times: a closed terminal or a batch system sends several.
    if (signal == SIGINT || signal == SIGTERM) action.sa_flags |= static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, &before);
    before_.emplace_back(signal, before);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [signal, action] : before_) sigaction(signal, &action, nullptr);
}

int StopSignals::received() { return first_signal; }

}  // namespace wisp
