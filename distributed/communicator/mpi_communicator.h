// MPI: the communicator of workers that are processes, started by mpirun or srun. The one part of
// Wisp that knows MPI.
#pragma once

#include <memory>

#include "distributed/communicator/group.h"

namespace wisp {

/// Starts MPI, once in a process; all ranks do it together. Throws Error if MPI cannot be called
/// from a comm thread.
std::unique_ptr<ProcessGroup> join_mpi();

}  // namespace wisp
