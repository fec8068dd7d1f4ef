#include "distributed/communicator/mpi_session.h"

#include <cstdlib>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Sets Open MPI's variables for TCP, unless the environment or mpirun sets them. Of a long message
/// Open MPI sends the rest when the receiver requests it, and the request queues behind data in the
/// other direction. By default ("put") it queues behind all of this data, so the two directions
/// take turns and an exchange lasts twice as long. With fragments, it queues only behind the data
/// in the socket's buffer. Up to 256 KiB there is no request.
void let_directions_travel_at_once() {
  setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0);
  setenv("OMPI_MCA_btl_tcp_eager_limit", "262144", 0);
  setenv("OMPI_MCA_btl_tcp_max_send_size", "262144", 0);
}

}  // namespace

void mpi_check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(concat(what, ": ", text));
}

MpiSession::MpiSession() {
  int started = 0, provided = MPI_THREAD_SINGLE;
  mpi_check(MPI_Initialized(&started), "MPI_Initialized");
  if (!started) {
    let_directions_travel_at_once();
    mpi_check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init");
    owns_mpi_ = true;
  } else {
    mpi_check(MPI_Query_thread(&provided), "MPI_Query_thread");
  }
  WISP_CHECK(provided >= MPI_THREAD_SERIALIZED, "this MPI gives thread level ", provided,
             ", but a comm thread calls it: at least MPI_THREAD_SERIALIZED (",
             MPI_THREAD_SERIALIZED, ") is needed; install an MPI that was built with threads");
}

MpiSession::~MpiSession() {
  if (owns_mpi_) MPI_Finalize();
}

MPI_Comm MpiSession::all() {
  MPI_Comm own = MPI_COMM_NULL;
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &own), "MPI_Comm_dup");
  mpi_check(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return own;
}

}  // namespace wisp
