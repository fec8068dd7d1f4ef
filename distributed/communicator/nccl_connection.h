// The connection of a communicator's ranks by NCCL, as one of them sees it. NCCL does not block:
// its work is on the rank's stream once the connection is at rest. Used by its rank's comm thread.
#pragma once

#include "core/device/stream.h"
#include "distributed/communicator/collective.h"

struct ncclComm;

namespace wisp {

class NcclConnection {
 public:
  /// A connection of the ranks of `host` that is not made yet. `host` and `stream` outlive it.
  NcclConnection(Communicator& host, const Stream& stream, double timeout_s)
      : host_(host), stream_(stream), timeout_s_(timeout_s) {}
  ~NcclConnection() { abort(); }
  NcclConnection(const NcclConnection&) = delete;
  NcclConnection& operator=(const NcclConnection&) = delete;

  /// Connects the ranks; all call it together. Throws Error if NCCL refuses, a rank has failed, or
  /// it takes more than `timeout_s` seconds.
  void join();
  /// Asks NCCL for this rank's side of a call that fits the others'.
  void submit(const Call& call);
  /// Whether NCCL has done its work or put it on the stream. Throws Error if it failed, at once or
  /// later.
  bool at_rest();
  /// Ends the connection, if there is one, together with the other ranks. Throws Error if they do
  /// not.
  void close();
  /// Ends this rank's part. Afterwards none of the connection's work waits for another rank.
  void abort() noexcept;

 private:
  void rest_with_others(const char* purpose);
  void reduce(const Call& call);
  void send_and_receive(const Call& call);
  void check(int code, const char* what) const;

  Communicator& host_;
  const Stream& stream_;
  const double timeout_s_;
  ncclComm* comm_ = nullptr;  // null at the end
};

}  // namespace wisp
