// The communicator of workers that are processes, started by mpirun or srun. It is the only
// interface to MPI outside this folder.
#pragma once

#include <memory>

#include "distributed/communicator/group.h"

namespace wisp {

/// Starts MPI and joins all processes; all call it together, once per process. Throws Error if MPI
/// cannot be called from a comm thread.
std::unique_ptr<ProcessGroup> join_mpi();

}  // namespace wisp
