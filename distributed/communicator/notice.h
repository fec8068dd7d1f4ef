// Notices: messages in which ranks describe a collective to each other before they submit it to
// their devices. A call that does not fit is found before it reaches a device. Values; any thread.
#pragma once

#include <cstdint>
#include <span>

#include "distributed/communicator/collective.h"

namespace wisp {

constexpr int64_t kNamedSizes = 8;

/// The place of a call's memory.
enum class Where : int { nowhere, host, device };

/// The description that one rank sends to another.
struct Notice {
  CallLabel label;
  Where place = Where::nowhere;  // place of the call's memory
  uint32_t checksum = 0;         // checksum of the slices' sizes
  int64_t slices = 0;            // number of slices that are sent to this peer, or reduced
  int64_t sizes[kNamedSizes] = {};
};

/// The notice of a call for rank `peer`.
Notice notice_of(const Call& call, Where place, int peer);

/// find_mismatch() from the notices that rank `own` received. All ranks find the same mismatch,
/// except for one in `own`'s received slices.
Mismatch find_mismatch(const Call& call, int own, std::span<const Notice> notices);

}  // namespace wisp
