#include "distributed/averaging/data_parallel.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/copy.h"

namespace wisp {
namespace {

/// 0 for the segments that the compressor gets; kDense for the others.
std::vector<int> assign(std::span<const Segment> segments, const Compressor* compressor) {
  std::vector<int> method_of;
  for (const Segment& segment : segments) {
    const bool dense = !compressor ||
                       (compressor->traits().dense_1d && segment.shape.rank() <= 1) ||
                       !compressor->refusal(field_of(segment)).empty();
    method_of.push_back(dense ? kDense : 0);
  }
  return method_of;
}

void check(const Method& method, const OptimizerRecipe& optimizer) {
  const Traits traits = method.compressor->traits();
  WISP_CHECK(std::ranges::count(traits.scopes, method.scope) > 0, "DataParallel: method ",
             method.name, " does not know its scope; Traits::scopes has those that it knows");
  WISP_CHECK(optimizer.accepts(traits.result),
             "DataParallel: the optimizer cannot use what method ", method.name,
             " leaves (Traits::result); OptimizerRecipe::rules has what it can use");
}

}  // namespace

DataParallel::DataParallel(Worker& worker, MemoryPool& pool, std::vector<Parameter*> parameters,
                           std::vector<Buffer*> buffers, const OptimizerRecipe& optimizer,
                           DataParallelOptions options)
    : worker_(worker),
      stream_(Stream::on(pool.device())),
      comm_stream_(Stream::on(pool.device())),
      backend_(make_backend(pool, stream_)),
      comm_backend_(make_backend(pool, comm_stream_)),
      context_{.stream = stream_,
               .backend = *backend_,
               .pool = pool,
               .seed = options.seed,
               .rank = worker.rank,
               .threads = worker.threads},
      comm_{.stream = comm_stream_,
            .backend = *comm_backend_,
            .pool = pool,
            .seed = options.seed,
            .rank = worker.rank},
      parameters_(context_, std::move(parameters), std::move(buffers)),
      optimizer_(optimizer.make(parameters_)),
      kept_(context_.empty(parameters_.buffer_arena().shape(), parameters_.dtype())),
      trace_(worker.rank, {}) {
  WISP_CHECK(!pool.device().is_cuda() || worker.communicator.move_devices(comm_stream_, pool),
             "DataParallel: these workers cannot exchange memory of ", pool.device().str(),
             "; threads of one process with one pool can");
  if (options.method.compressor) check(options.method, optimizer);
  keep_buffers();
  std::vector<int> method_of = assign(parameters_.segments(), options.method.compressor.get());
  std::vector<Method> methods;
  if (options.method.compressor) methods.push_back(std::move(options.method));
  sync_ = std::make_unique<GradientAveraging>(worker.communicator, context_, comm_, parameters_,
                                              std::move(methods), std::move(method_of),
                                              std::move(options.averaging), trace_);
}

DataParallel::~DataParallel() {
  sync_.reset();
  for (const Stream& stream : {stream_, comm_stream_}) {
    try {
      stream.synchronize();
    } catch (const std::exception& failure) {  // the worker that noticed it has thrown it
    }
  }
}

void DataParallel::keep_buffers() { copy(stream_, parameters_.buffer_arena(), kept_); }

Outcome DataParallel::step(const Variable& loss, double lr, double epoch) {
  sync_->begin({context_.step, epoch, lr});
  sync_->forward_done(loss.value());
  backward(loss, {.seed = 1.0 / sync_->summands()});
  worker_.turns.release();
  const Outcome outcome = sync_->before_update();
  worker_.turns.acquire();
  if (outcome != Outcome::skipped) {
    optimizer_->step(context_, lr, sync_->updates(), sync_->rules());
    sync_->after_update();
    keep_buffers();
  } else {
    copy(stream_, kept_, parameters_.buffer_arena());
  }
  ++context_.step;
  return outcome;
}

}  // namespace wisp
