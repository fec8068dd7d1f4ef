#include "distributed/exchange/comm_thread.h"

#include <cmath>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/copy.h"

namespace wisp {
namespace {

/// Words of the status.
enum Word { kNonFinite, kStop, kHash, kNotHash, kWords };

}  // namespace

CommThread::CommThread(Communicator& communicator, Context& context, Trace& trace)
    : communicator_(communicator),
      context_(context),
      status_({kWords}, DType::u32),
      courier_(inbox_, trace, context.stream),
      queue_([this] {
        use(context_.stream.device());
        require_omp_threads(context_.threads, "comm_threads");
        set_omp_threads(context_.threads);
      }) {
  queue_.drain();
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
  if (loss.device().is_cuda()) {
    if (!loss_.defined()) loss_ = host_tensor(loss.shape(), loss.dtype(), loss.device());
    copy(context_.stream, loss, loss_);
  } else {
    loss_ = loss;
  }
  courier_.settle();
  const auto own = static_cast<uint32_t>(hash);
  auto* words = status_.data<uint32_t>();
  words[kNonFinite] = dispatch_float(loss_.dtype(), "loss", [&](auto zero) {
    return !std::isfinite(*loss_.data<decltype(zero)>());
  });
  words[kStop] = stop_requested_;
  words[kHash] = own;
  words[kNotHash] = ~own;
  const Bytes data{status_.raw(), status_.bytes()};
  const PendingPtr pending = communicator_.all_reduce({&data, 1}, DType::u32, ReduceOp::max);
  courier_.finish(*pending, "status", step);
  WISP_CHECK(words[kHash] == own && words[kNotHash] == ~own, "step ", step,
             ": the ranks' plans of what to exchange differ; they must run the same configuration "
             "and program");
  if (words[kNonFinite]) return Outcome::skipped;
  return words[kStop] ? Outcome::stop : Outcome::applied;
}

}  // namespace wisp
