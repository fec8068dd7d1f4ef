#include "distributed/communicator/thread_meetings.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "distributed/communicator/absent_ranks.h"
#include "distributed/communicator/device_moves.h"

namespace wisp {

std::string ThreadMeetings::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void ThreadMeetings::fail(int rank, const std::string& cause) {
  const std::string said = cause.empty() ? "no cause given" : cause;
  if (failure_.empty()) failure_ = workers() > 1 ? concat("rank ", rank, ": ", said) : said;
  changed_.notify_all();
}

void ThreadMeetings::abort(int rank, const std::string& cause) {
  {
    std::lock_guard lock(mutex_);
    fail(rank, cause);
  }
  notify_all_but(-1);
}

void ThreadMeetings::listen(int rank, std::function<void()> notify) {
  Listener& listener = listeners_[static_cast<size_t>(rank)];
  std::lock_guard lock(listener.mutex);
  listener.notify = std::move(notify);
}

void ThreadMeetings::notify(int rank) {
  Listener& listener = listeners_[static_cast<size_t>(rank)];
  std::lock_guard lock(listener.mutex);
  if (listener.notify) listener.notify();
}

void ThreadMeetings::notify_all_but(int rank) {
  for (int other = 0; other < workers(); ++other)
    if (other != rank) notify(other);
}

std::shared_ptr<Circle> ThreadMeetings::circle_of(const Roster& roster) {
  generations_[static_cast<size_t>(roster.in_run())] = roster.generation;
  std::lock_guard lock(mutex_);
  const std::pair key(roster.generation, roster.ranks.front());
  std::shared_ptr<Circle> circle = forming_[key];
  if (!circle) {
    forming_[key] = circle = std::make_shared<Circle>(roster.ranks);
    std::erase_if(circles_, [](const std::weak_ptr<Circle>& old) { return old.expired(); });
    circles_.push_back(circle);
  }
  if (++circle->members == roster.ranks.size()) forming_.erase(key);
  return circle;
}

std::shared_ptr<Meeting> ThreadMeetings::join(Circle& circle, const Roster& roster, Call call) {
  const auto index = static_cast<size_t>(roster.rank);
  std::shared_ptr<Meeting> meeting;
  bool failed = false;
  {
    std::lock_guard lock(mutex_);
    if (!failure_.empty()) return nullptr;
    WISP_CHECK(!circle.under_way[index], call.label.str(),
               ": the collective before it is still under way, wait() for it first");
    if (!circle.gathering) circle.gathering = std::make_shared<Meeting>(roster.ranks.size());
    meeting = circle.gathering;
    meeting->on_device = meeting->on_device || call.on_device;
    meeting->calls[index] = std::move(call);
    meeting->came[index] = 1;
    circle.under_way[index] = 1;
    if (++meeting->arrived < meeting->calls.size()) return meeting;
    circle.gathering = nullptr;
    open(*meeting, roster);
    failed = !failure_.empty();
  }
  if (failed) {
    notify_all_but(roster.in_run());
    return meeting;
  }
  for (const int rank : roster.ranks)
    if (rank != roster.in_run()) notify(rank);
  return meeting;
}

/// Begins the transfer when all ranks have come.
void ThreadMeetings::open(Meeting& meeting, const Roster& roster) {
  if (const Mismatch mismatch = find_mismatch(meeting.calls); !mismatch.why.empty())
    return fail(roster.ranks[static_cast<size_t>(mismatch.rank)], mismatch.why);
  meeting.begin_us = now_us();
  double slowest = 0.0;
  for (size_t index = 0; index < meeting.calls.size(); ++index) {
    const Traffic traffic = traffic_of(meeting.calls[index], static_cast<int>(index),
                                       static_cast<int>(meeting.calls.size()));
    meeting.traffic[index] = traffic;
    meeting.ready_at_us[index] =
        meeting.begin_us + duration_us(link_, traffic.sent, traffic.received, traffic.steps);
    slowest = std::max(slowest, meeting.ready_at_us[index]);
  }
  // Every rank hears from the slowest, but in an exchange a rank needs only its own messages.
  if (meeting.calls[0].label.kind != Call::Kind::exchange)
    meeting.ready_at_us.assign(meeting.ready_at_us.size(), slowest);
  changed_.notify_all();
}

double ThreadMeetings::ready_at_us(const Meeting* meeting, int rank, Deadline& deadline) const {
  std::lock_guard lock(mutex_);
  if (!failure_.empty()) return 0.0;
  if (meeting->complete()) return meeting->ready_at_us[static_cast<size_t>(rank)];
  return deadline.passed() ? 0.0 : deadline.next_us();
}

/// Sleeps until a change, or about until `until_us`.
void ThreadMeetings::sleep(Lock& lock, double until_us) {
  changed_.wait_for(lock, std::chrono::duration<double, std::micro>(until_us - now_us()));
}

/// Waits for `condition`; returns false if the deadline passes first.
template <class Condition>
bool ThreadMeetings::wait(Lock& lock, Deadline& deadline, const Condition& condition) {
  while (!condition()) {
    if (deadline.passed()) return false;
    sleep(lock, deadline.next_us());
  }
  return true;
}

Transfer ThreadMeetings::finish(Circle& circle, Meeting* meeting, const Roster& roster,
                                const Stream* stream, Deadline& deadline) {
  const auto index = static_cast<size_t>(roster.rank);
  Lock lock(mutex_);
  if (failure_.empty() && !carry_out(lock, *meeting, roster, stream, deadline))
    fail(roster.in_run(), concat(meeting->calls[index].label.str(), ": waited ", timeout_s_,
                                 " s for ", missing(*meeting, circle)));
  if (meeting) leave(lock, *meeting, roster.rank);
  if (!failure_.empty()) {
    const std::string failure = failure_;
    lock.unlock();
    notify_all_but(roster.in_run());
    throw Error(failure);
  }
  circle.under_way[index] = 0;
  const Traffic& traffic = meeting->traffic[index];
  const double end_us = std::max(meeting->moved_us, meeting->ready_at_us[index]);
  return {traffic.sent, traffic.received, meeting->begin_us, end_us};
}

/// Returns false if another rank did not come, or did not finish, in time.
bool ThreadMeetings::carry_out(Lock& lock, Meeting& meeting, const Roster& roster,
                               const Stream* stream, Deadline& deadline) {
  const auto failed = [&] { return !failure_.empty(); };
  if (!wait(lock, deadline, [&] { return failed() || meeting.complete(); })) return false;
  move_shares(lock, meeting, roster, stream);
  deadline.restart();
  if (!wait(lock, deadline, [&] { return failed() || meeting.done(); })) return false;
  const double carried_us = meeting.ready_at_us[static_cast<size_t>(roster.rank)];
  while (!failed() && now_us() < carried_us) sleep(lock, carried_us);
  if (meeting.on_device && failure_.empty()) {
    for (const Event& moved : meeting.moved_on_device) moved.wait(*stream);
  }
  return true;
}

void ThreadMeetings::move_shares(Lock& lock, Meeting& meeting, const Roster& roster,
                                 const Stream* stream) {
  while (failure_.empty()) {
    const int share = meeting.take_share(roster.rank);
    if (share < 0) return;
    ++meeting.moving;
    lock.unlock();
    std::string failure;
    try {
      if (meeting.on_device) {
        move_device_share(*stream, meeting.calls, share);
        meeting.moved_on_device[static_cast<size_t>(share)].record(*stream);
      } else {
        move_share(meeting.calls, share);
      }
    } catch (const std::exception& error) {
      failure = error.what();
    }
    lock.lock();
    if (!failure.empty()) fail(roster.in_run(), failure);
    --meeting.moving;
    ++meeting.moved;
    if (meeting.done()) meeting.moved_us = now_us();
    if (meeting.moving == 0) changed_.notify_all();
  }
}

/// Ends a rank's part. In an unfinished meeting, waits for shares that still move in its memory.
void ThreadMeetings::leave(Lock& lock, Meeting& meeting, int rank) {
  if (meeting.done()) return;
  meeting.deserter = rank;
  changed_.wait(lock, [&] { return meeting.moving == 0; });
  if (!meeting.on_device) return;
  for (const Event& moved : meeting.moved_on_device) {
    try {
      moved.synchronize();
    } catch (const std::exception& failure) {  // the submitter gets the failure
    }
  }
}

void ThreadMeetings::desert(Meeting& meeting, int rank) noexcept {
  Lock lock(mutex_);
  leave(lock, meeting, rank);
}

/// The ranks that keep `rank` waiting in other circles; none if it waits in none.
std::vector<int> ThreadMeetings::waited_for_by(int rank) const {
  std::vector<int> ranks;
  for (const std::weak_ptr<Circle>& each : circles_) {
    const std::shared_ptr<Circle> circle = each.lock();
    if (!circle || !circle->gathering) continue;
    const std::vector<int> absent = circle->absent_from(*circle->gathering);
    if (std::ranges::count(circle->ranks, rank) > 0 && std::ranges::count(absent, rank) == 0)
      ranks.insert(ranks.end(), absent.begin(), absent.end());
  }
  return ranks;
}

/// The ranks for which a meeting waits.
std::string ThreadMeetings::missing(const Meeting& meeting, const Circle& circle) const {
  if (meeting.complete() && meeting.deserter < 0) return "data that another rank moves";
  if (meeting.complete())
    return concat("rank ", circle.ranks[static_cast<size_t>(meeting.deserter)], ", which gave up");
  const auto waits_for = [this](int rank) { return waited_for_by(rank); };
  return absent_words(last_awaited(circle.absent_from(meeting), waits_for));
}

}  // namespace wisp
