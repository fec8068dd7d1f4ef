// The files of a checkpoint's state: one for what all ranks share, and one per rank, which another
// number of ranks may read. Each worker's thread calls.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/stream.h"
#include "core/io/checkpoint.h"
#include "core/io/saved_state.h"

namespace wisp {

/// Writes the states with this sharing. Waits for the stream.
void write_state(const Stream& stream, const std::string& path,
                 const std::vector<SavedState>& state, Sharing sharing);

/// Reads the shared states; those that matter within an epoch only if `within_epoch`. Returns a
/// line for each tensor with unusable_values() that its state allows. Throws Error unless the file
/// holds exactly the states in `state`, with values that each state's check allows.
std::vector<std::string> read_shared(const std::string& directory, const Stream& stream,
                                     const std::vector<SavedState>& state, bool within_epoch);

/// The place of a rank among the workers that continue the run.
struct Seat {
  int rank = 0, workers = 1;
};

/// Reads a rank's own states, by each state's rule if `saved_workers` is another number. Read
/// shared state first, as rules may depend on it. Returns and throws as read_shared().
std::vector<std::string> read_own(const std::string& directory, const Stream& stream,
                                  const std::vector<SavedState>& state, Seat seat,
                                  int saved_workers);

/// Fills `state.tensor` of rank `rank` of `workers` by the state's rule, from `files`, one for each
/// earlier rank. Rank 0 gets the remainder of an integer sum. Throws Error for a dtype that cannot
/// be summed, for elements of a partitioned state that are in no file or in several, and for values
/// that the state's check does not allow.
void read_resized(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
                  int rank, int workers);

}  // namespace wisp
