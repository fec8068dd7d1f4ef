// The start and end of MPI in this process. The session starts MPI unless it is running, sets its
// options for TCP, and ends MPI only if it started it. One object per process.
#pragma once

#include <mpi.h>

namespace wisp {

/// Throws Error with MPI's message unless `status` is success.
void mpi_check(int status, const char* what);

class MpiSession {
 public:
  /// Throws Error if this MPI cannot be called from a comm thread.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// A new communicator of all processes, whose calls return errors. Collective.
  static MPI_Comm all();

 private:
  bool owns_mpi_ = false;
};

}  // namespace wisp
