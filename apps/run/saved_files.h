// The files in which a checkpoint keeps state: one of what all ranks share, and one of each rank.
#pragma once

#include <string>
#include <vector>

#include "core/device/stream.h"
#include "core/io/saved_state.h"

namespace wisp {

std::string shared_file(const std::string& directory);
std::string rank_file(const std::string& directory, int rank);

/// Writes what has this sharing. Waits for the stream.
void write_state(const Stream& stream, const std::string& path,
                 const std::vector<SavedState>& state, Sharing sharing);

/// Reads what all ranks share; what means something within an epoch only if `within_epoch`. Throws
/// Error unless the file holds just what `state` has.
void read_shared(const std::string& directory, const Stream& stream,
                 const std::vector<SavedState>& state, bool within_epoch);

/// A rank among the workers that go on.
struct Seat {
  int rank = 0, workers = 1;
};

/// Reads what is a rank's own, if `saved_workers` is another number by each state's rule. Shared
/// state first: rules may depend on it. Throws Error as above.
void read_own(const std::string& directory, const Stream& stream,
              const std::vector<SavedState>& state, Seat seat, int saved_workers);

}  // namespace wisp
