#include "distributed/exchange/comm_thread.h"

#include <omp.h>

#include <exception>
#include <utility>

namespace wisp {

CommThread::CommThread(Communicator& communicator, Context& context, Trace& trace)
    : communicator_(communicator),
      context_(context),
      status_(communicator, context),
      courier_(inbox_, trace, context.stream),
      queue_([threads = context.threads, device = context.stream.device()] {
        omp_set_num_threads(threads);
        use(device);
      }) {
  communicator_.on_progress([this] { inbox_.ring(); });
}

CommThread::~CommThread() {
  inbox_.close();
  communicator_.on_progress({});
}

void CommThread::post(std::function<void()> task) {
  queue_.post([this, task = std::move(task)] {
    try {
      task();
    } catch (const Inbox::Closed&) {
      throw;  // the compute thread knows the cause and tells the others
    } catch (const std::exception& failure) {
      communicator_.abort(failure.what());
      throw;
    }
  });
}

void CommThread::between_steps(const std::function<void()>& task) {
  queue_.post([&] {
    context_.stream.synchronize();
    task();
    context_.stream.synchronize();
  });
  queue_.drain();
}

Outcome CommThread::agree(const Event& written, const Tensor& loss, uint64_t hash, int64_t step) {
  written.wait(context_.stream);
  status_.fetch(loss);
  courier_.settle();
  const PendingPtr pending = status_.start(stop_requested_, hash);
  courier_.finish(*pending, "status", step);
  return status_.outcome(step);
}

}  // namespace wisp
