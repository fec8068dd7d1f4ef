// The communicator of workers that are threads of one process. A ThreadGroup may be used from any
// thread; each of its communicators from one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator/group.h"
#include "distributed/communicator/link.h"

namespace wisp {

class ThreadMeetings;

class ThreadGroup final : public Group {
 public:
  /// If a rank waits longer than `timeout_s` seconds for another, the group ends. With a link,
  /// every collective takes at least the time that its bytes need on it.
  explicit ThreadGroup(int workers, LinkSpec link = {}, double timeout_s = 60.0);
  ~ThreadGroup() override;
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int size() const override;
  Communicator& communicator(int rank) override;
  void abort(int rank, const std::string& cause) override;
  std::string failure() const override;

 private:
  class Member;
  std::unique_ptr<ThreadMeetings> meetings_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace wisp
