// What ranks tell each other of a collective before they ask their devices for it, so that a call
// that does not fit never reaches them. Values.
#pragma once

#include <cstdint>
#include <span>

#include "distributed/communicator/collective.h"

namespace wisp {

constexpr int64_t kNamedSizes = 8;

/// Where the memory of a call is.
enum class Where : int { nowhere, host, device };

/// What a rank tells another before it asks its device for anything.
struct Notice {
  CallLabel label;
  Where place = Where::nowhere;  // of its memory
  uint32_t checksum = 0;         // of the sizes
  int64_t slices = 0;            // that it sends there, or reduces
  int64_t sizes[kNamedSizes] = {};
};

/// Of a call, for rank `peer`.
Notice notice_of(const Call& call, Where place, int peer);

/// find_mismatch() by what all ranks told rank `own`: the same for all, but for its mail.
Mismatch find_mismatch(const Call& call, int own, std::span<const Notice> notices);

}  // namespace wisp
