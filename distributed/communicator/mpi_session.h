// MPI's start and end in this process: it is started unless somebody has, told how to use TCP, and
// ended by who started it. One object a process.
#pragma once

#include <mpi.h>

namespace wisp {

/// Throws Error with MPI's words unless `status` is success.
void mpi_check(int status, const char* what);

class MpiSession {
 public:
  /// Throws Error if this MPI may not be called by a comm thread.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// All processes, in a communicator of its own, whose calls return their errors. Collective.
  static MPI_Comm all();

 private:
  bool owns_mpi_ = false;
};

}  // namespace wisp
