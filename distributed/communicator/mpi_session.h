// The start and end of MPI in this process. The session starts MPI unless it is running, sets its
// limit for TCP, and ends MPI only if it started it. One object per process.
#pragma once

#include <mpi.h>

namespace wisp {

/// Throws Error with MPI's message unless `status` is success.
void mpi_check(int status, const char* what);

class MpiSession {
 public:
  /// Bytes of the longest message, MPI's header included, that Open MPI sends over TCP without
  /// asking the receiver. The environment or mpirun may set another limit, and a program that has
  /// started MPI itself keeps the limit it has.
  static constexpr int kUnaskedBytes = 262144;

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
