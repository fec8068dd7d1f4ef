#include "distributed/own_weights/own_weights.h"

#include <cmath>
#include <limits>

#include "core/base/clock.h"
#include "core/device_words.h"
#include "core/loops/parallel.h"
#include "core/train/norm.h"

namespace wisp {
namespace {

template <class T>
struct SquaredDistance {
  using Value = double;
  const T* x;
  const T* y;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t i) const {
    const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    return d * d;
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

/// A cut without methods, of one bucket.
Cut dense_cut(const FlatParameters& parameters) {
  const std::vector<int> dense(parameters.segments().size(), kDense);
  return make_cut(parameters.segments(), size_of(parameters.dtype()), dense, {},
                  {.bucket_bytes = std::numeric_limits<int64_t>::max()}, {});
}

}  // namespace

OwnWeights::OwnWeights(const SynchronizerSite& site, const OwnWeightsOptions& options,
                       std::unique_ptr<WeightExchange> exchange)
    : site_(site),
      options_(options),
      cut_(dense_cut(site.parameters)),
      readiness_(site.parameters, cut_),
      clip_(site.compute, site.parameters, options.clip, 1),
      rules_(site.parameters.segments().size(), UpdateRule::gradient),
      applied_({1}, DType::i64),
      exchange_(std::move(exchange)),
      comm_thread_(site.communicator, site.comm, site.trace) {
  site_.parameters.on_grad_ready(
      [this](const Segment& segment) { readiness_.complete(segment, site_.compute.stream); });
}

OwnWeights::~OwnWeights() { site_.parameters.on_grad_ready({}); }

/// Blocks until the comm thread has done everything that was posted.
void OwnWeights::wait(const char* what) {
  const double begin = now_us();
  comm_thread_.drain();
  const double end = now_us();
  comm_thread_.courier().cost.wait_ms += (end - begin) * 1e-3;
  site_.trace.span(Lane::wait, what, begin, end, info_.step);
}

void OwnWeights::begin(const StepBegin& begin) {
  readiness_.begin();
  info_.step = begin.step;
  info_.applied = updates();
  info_.epoch = begin.epoch;
  info_.rank = site_.communicator.rank();
  info_.ranks = info_.summands = site_.communicator.size();
  info_.lr = begin.lr;
  info_.seed = site_.comm.seed;
  comm_thread_.courier().begin(
      site_.parameters.parameter_count() * size_of(site_.parameters.dtype()),
      site_.communicator.size());
  comm_thread_.post([this] { exchange_->begin(info_, comm_thread_.courier()); });
  wait("begin");
  if (options_.overlap) post_travel();
}

void OwnWeights::forward_done(const Tensor& loss) {
  loss_ = loss;
  loss_event_.record(site_.compute.stream);
  if (options_.overlap) post_status();
}

Outcome OwnWeights::before_update() {
  readiness_.check_complete();
  if (!options_.overlap) {
    post_travel();
    post_status();
  }
  wait("wait");
  const double begin = now_us();
  if (outcome_ != Outcome::skipped) check_gradient();
  comm_thread_.courier().cost.clip_ms = (now_us() - begin) * 1e-3;
  return outcome_;
}

void OwnWeights::after_update() {
  updated_.record(site_.compute.stream);
  comm_thread_.post([this] {
    updated_.wait(site_.comm.stream);
    exchange_->after_update(info_, comm_thread_.courier());
    comm_thread_.courier().settle();
  });
  wait("mix");
}

void OwnWeights::post_travel() {
  comm_thread_.post([this] { exchange_->travel(info_, comm_thread_.courier()); });
}

void OwnWeights::post_status() {
  comm_thread_.post([this] {
    outcome_ = comm_thread_.agree(loss_event_, loss_, exchange_->hash(), info_.step);
    if (outcome_ != Outcome::skipped) info_.applied = ++*applied_.data<int64_t>();
  });
}

/// Checks the worker's complete gradient: unusable segments become zero, the rest is clipped.
void OwnWeights::check_gradient() {
  const std::vector<int>& all = cut_.buckets.front().dense;
  clip_.measure(all);
  clip_.fetch();
  site_.compute.stream.synchronize();
  for (const int id : all) {
    if (!clip_.check(id, comm_thread_.courier().cost)) clip_.clear(id);
  }
  clip_.clip(all);
}

Tensor OwnWeights::consensus() {
  const Tensor weights = site_.parameters.trained_weight();
  if (!mean_.defined()) mean_ = site_.comm.empty(weights.shape(), weights.dtype());
  site_.compute.stream.synchronize();
  between_steps([&] {
    copy(site_.comm.stream, weights, mean_);
    site_.comm.stream.synchronize();
    const Bytes data{mean_.raw(), mean_.bytes()};
    site_.communicator.all_reduce({&data, 1}, mean_.dtype(), ReduceOp::sum)->wait();
    scale(site_.comm.stream, mean_, 1.0 / site_.communicator.size());
  });
  return mean_;
}

double OwnWeights::consensus_distance() {
  const Tensor mean = consensus();
  double sum = 0.0;
  between_steps([&] {
    const DeviceWords squares(site_.comm, {1}, DType::f64);
    dispatch_float(mean.dtype(), "consensus_distance", [&](auto zero) {
      using T = decltype(zero);
      parallel_reduce(site_.comm.stream, mean.numel(),
                      SquaredDistance<T>{site_.parameters.weight().data<T>(), mean.data<T>()},
                      squares.device().data<double>());
    });
    squares.fetch(site_.comm.stream);
    site_.comm.stream.synchronize();
    sum = *squares.host().data<double>();
    const Bytes data{reinterpret_cast<std::byte*>(&sum), sizeof sum};
    site_.communicator.all_reduce({&data, 1}, DType::f64, ReduceOp::sum)->wait();
  });
  return std::sqrt(sum / site_.communicator.size());
}

std::vector<SavedState> OwnWeights::state() {
  std::vector<SavedState> saved = exchange_->state();
  saved.push_back(
      {.name = "applied", .tensor = applied_, .sharing = Sharing::shared, .check = check_counts});
  return saved;
}

}  // namespace wisp
