// Waits for a collective on a comm thread. Unlike Pending::wait() it ends when the compute thread
// goes away.
#pragma once

#include <algorithm>

#include "distributed/communicator/communicator.h"
#include "distributed/exchange/inbox.h"

namespace wisp {

/// Returns when the collective can be finished at once, or has been waited for `timeout_s`: then
/// its wait() throws, naming who did not come. Throws Inbox::Closed.
inline void await(Pending& pending, Inbox& inbox, double timeout_s) {
  const double limit = now_us() + timeout_s * 1e6;
  for (;;) {
    const uint64_t seen = inbox.events();
    const double now = now_us();
    if (pending.ready() || limit <= now) return;
    inbox.wait(seen, std::min(pending.ready_at_us(), limit) - now);
  }
}

}  // namespace wisp
