#include "distributed/communicator/mpi_session.h"

#include <cstdlib>

#include "core/base/error.h"

namespace wisp {

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
    // Open MPI's limit, unless the environment or mpirun has set it
    setenv("OMPI_MCA_btl_tcp_eager_limit", concat(kUnaskedBytes).c_str(), 0);
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
