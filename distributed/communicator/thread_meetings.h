// The meetings of threads for collectives, of all ranks of a run or of a group. The last rank to
// come opens a meeting. Any thread; each rank comes from one thread at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/device/stream.h"
#include "distributed/communicator/collective.h"
#include "distributed/communicator/deadline.h"
#include "distributed/communicator/link.h"

namespace wisp {

/// The meeting of the ranks for one collective. A waiting rank moves shares that no other has
/// taken, so no rank waits for one that has come and went on to compute.
struct Meeting {
  explicit Meeting(size_t workers)
      : calls(workers),
        came(workers),
        taken(workers),
        traffic(workers),
        ready_at_us(workers),
        moved_on_device(workers) {}

  std::vector<Call> calls;  // all vectors are by rank; complete when all have come
  std::vector<char> came, taken;
  std::vector<Traffic> traffic;
  std::vector<double> ready_at_us;     // time at which the link has carried the rank's bytes
  bool on_device = false;              // the memory is a device's, and streams move the shares
  std::vector<Event> moved_on_device;  // recorded when a share is moved
  size_t arrived = 0;
  size_t moving = 0, moved = 0;           // number of shares
  int deserter = -1;                      // a rank that gave up; its memory may be gone
  double begin_us = 0.0, moved_us = 0.0;  // time when all had come; time when all data was there

  bool complete() const { return arrived == calls.size(); }
  bool done() const { return moved == calls.size(); }
  /// Takes a share to move, preferably the rank's own; -1 if none is left.
  int take_share(int rank) {
    if (deserter >= 0) return -1;
    for (size_t i = 0; i < taken.size(); ++i) {
      const size_t share = (static_cast<size_t>(rank) + i) % taken.size();
      if (!std::exchange(taken[share], 1)) return static_cast<int>(share);
    }
    return -1;
  }
};

/// The ranks of a roster, which meet for one collective after the other.
struct Circle {
  explicit Circle(std::vector<int> of_run) : ranks(std::move(of_run)), under_way(ranks.size()) {}

  const std::vector<int> ranks;        // numbers in the run; other vectors are by their index
  size_t members = 0;                  // ranks that have asked for this circle
  std::shared_ptr<Meeting> gathering;  // meeting that some ranks have not joined yet
  std::vector<char> under_way;         // the rank has a collective to finish

  /// The ranks that have not come to a meeting of this circle.
  std::vector<int> absent_from(const Meeting& meeting) const {
    std::vector<int> absent;
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!meeting.came[i]) absent.push_back(ranks[i]);
    return absent;
  }
};

/// All circles of a run. A failure ends the meetings of all.
class ThreadMeetings {
 public:
  ThreadMeetings(int workers, LinkSpec link, double timeout_s)
      : link_(link),
        timeout_s_(timeout_s),
        generations_(static_cast<size_t>(workers)),
        listeners_(static_cast<size_t>(workers)) {}

  int workers() const { return static_cast<int>(listeners_.size()); }
  std::string failure() const;
  /// Here and in listen(), `rank` is a rank of the run.
  void abort(int rank, const std::string& cause);
  void listen(int rank, std::function<void()> notify);

  /// The circle of a roster's ranks. Each of them asks once, in the order of its generations.
  std::shared_ptr<Circle> circle_of(const Roster& roster);
  /// The latest generation of a rank of the run. Only its own thread uses it.
  int generation(int rank) const { return generations_[static_cast<size_t>(rank)]; }

  /// Hands in a rank's side of the circle's next collective; null if the run has failed.
  std::shared_ptr<Meeting> join(Circle& circle, const Roster& roster, Call call);
  /// The time limit of a rank's wait for the others.
  Deadline deadline() const { return Deadline(timeout_s_); }
  double ready_at_us(const Meeting* meeting, int rank, Deadline& deadline) const;
  /// `stream` is the rank's stream of a device, or null.
  Transfer finish(Circle& circle, Meeting* meeting, const Roster& roster, const Stream* stream,
                  Deadline& deadline);
  /// Ends a collective that the rank will not finish. Afterwards nobody touches its memory.
  void desert(Meeting& meeting, int rank) noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Listener {
    std::mutex mutex;
    std::function<void()> notify;
  };

  void fail(int rank, const std::string& cause);
  void open(Meeting& meeting, const Roster& roster);
  bool carry_out(Lock& lock, Meeting& meeting, const Roster& roster, const Stream* stream,
                 Deadline& deadline);
  void move_shares(Lock& lock, Meeting& meeting, const Roster& roster, const Stream* stream);
  void leave(Lock& lock, Meeting& meeting, int rank);
  void notify(int rank);
  void notify_all_but(int rank);
  std::string missing(const Meeting& meeting, const Circle& circle) const;
  std::vector<int> waited_for_by(int rank) const;
  void sleep(Lock& lock, double until_us);
  template <class Condition>
  bool wait(Lock& lock, Deadline& deadline, const Condition& condition);

  const LinkSpec link_;
  const double timeout_s_;
  std::vector<int> generations_;  // indexed by rank of the run, like listeners_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string failure_;
  std::map<std::pair<int, int>, std::shared_ptr<Circle>> forming_;  // by generation, first rank
  std::vector<std::weak_ptr<Circle>> circles_;
  std::vector<Listener> listeners_;
};

}  // namespace wisp
