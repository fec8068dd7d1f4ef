#include "distributed/averaging/gradient_averaging.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace wisp {
namespace {

bool needs_squares(const Method& method) { return method.compressor->traits().squares; }

/// The clipping of each worker's own gradient (`local`), or of the mean.
ClipOptions clip_of(ClipOptions clip, std::span<const Method> methods, bool local) {
  if (clips_locally(clip, methods) != local) clip.norm = 0.0;
  if (!local) clip.local_factor = 0.0;
  return clip;
}

}  // namespace

bool clips_locally(const ClipOptions& clip, std::span<const Method> methods) {
  bool locally = clip.where == ClipWhere::local;
  for (const Method& method : methods) {
    const Clipping clipping = method.compressor->traits().clipping;
    WISP_CHECK(
        clip.norm == 0.0 || clip.where != ClipWhere::mean || clipping != Clipping::local_only,
        "the mean gradient cannot be clipped: method ", method.name,
        " has a residual or momentum that would lose the clipped part, or returns no gradient; "
        "clip each worker's own gradient");
    if (clip.where == ClipWhere::automatic) locally = locally || clipping != Clipping::anywhere;
  }
  return locally;
}

GradientAveraging::GradientAveraging(Communicator& communicator, Context& compute, Context& comm,
                                     FlatParameters& parameters, std::vector<Method> methods,
                                     std::vector<int> method_of, AveragingOptions options,
                                     Trace& trace)
    : communicator_(communicator),
      compute_(compute),
      comm_(comm),
      parameters_(parameters),
      methods_(std::move(methods)),
      options_(std::move(options)),
      trace_(trace),
      units_(communicator, comm, parameters, compressors_of(methods_),
             make_cut(parameters.segments(), size_of(parameters.dtype()), method_of,
                      cut_methods(methods_), options_.buckets, comm.stream.device()),
             options_.guard),
      local_(comm, parameters, clip_of(options_.clip, methods_, true), communicator.size()),
      mean_(compute, parameters, clip_of(options_.clip, methods_, false), 1,
            std::numeric_limits<double>::infinity()),
      squares_(compute, parameters, std::ranges::any_of(methods_, needs_squares)),
      readiness_(parameters, units_.cut()),
      compute_watch_(compute.stream),
      probe_(communicator, comm, parameters, units_, options_.probe_every),
      counters_({1}, DType::i64),
      last_lr_({1}, DType::f64),
      comm_thread_(communicator, comm, trace) {
  for (const Segment& segment : parameters.segments()) all_segments_.push_back(segment.id);
  parameters_.on_grad_ready([this](const Segment& segment) { gradient_ready(segment); });
}

GradientAveraging::~GradientAveraging() { parameters_.on_grad_ready({}); }

// ---------------------------------------------------------------- compute thread

void GradientAveraging::begin(const StepBegin& info) {
  WISP_CHECK(!posted_, "step ", info.step, ": the exchange of step ", begin_.step,
             " has not ended, because that step failed; go on from a checkpoint, with new objects");
  begin_ = info;
  squares_.begin();
  readiness_.begin();
  comm_thread_.inbox().clear();
}

void GradientAveraging::forward_done(const Tensor& loss) {
  loss_ = loss;
  loss_event_.record(compute_.stream);
  if (!options_.overlap) return;
  comm_thread_.post([this] { exchange(); });
  posted_ = true;
}

void GradientAveraging::gradient_ready(const Segment& segment) {
  if (const auto item = readiness_.complete(segment, compute_.stream))
    comm_thread_.inbox().post(*item);
}

Outcome GradientAveraging::before_update() {
  readiness_.check_complete();
  StreamWatch::Mark begin = compute_watch_.mark();
  if (!posted_) comm_thread_.post([this] { exchange(); });
  comm_thread_.drain();
  posted_ = false;
  exchanged_.wait(compute_.stream);
  compute_watch_.time(std::move(begin), [this, step = begin_.step](const StreamWatch::Span& span) {
    wait_ms_ += span.ms();
    trace_.span(Lane::wait, "wait", span.begin_us, span.end_us, step, 0);
  });
  if (mean_.enabled() && outcome_ != Outcome::skipped) {
    begin = compute_watch_.mark();
    mean_.measure(all_segments_);
    mean_.clip(all_segments_);
    compute_watch_.time(std::move(begin),
                        [this](const StreamWatch::Span& span) { clip_ms_ += span.ms(); });
  }
  compute_watch_.poll();
  StepCost& cost = comm_thread_.courier().cost;
  cost.wait_ms = std::exchange(wait_ms_, 0.0);
  cost.clip_ms = std::exchange(clip_ms_, 0.0);
  return outcome_;
}

void GradientAveraging::between_steps(const std::function<void()>& task) {
  comm_thread_.between_steps([&] {
    units_.check();
    task();
  });
}

void GradientAveraging::part_of(const WholeGradient& whole) {
  local_.part_of(whole);
  mean_.part_of({.elements = whole.elements, .norm = -1.0});
}

/// The momentum that a compressor keeps is each rank's share once the unit is engaged; before that
/// it is the optimizer's, of the mean. The momentum that a compressor leaves as a result is equal
/// on all ranks.
std::vector<SavedState> GradientAveraging::state() {
  const StepPlan& step_plan = units_.step_plan();
  std::vector<SavedState> saved = units_.memory().state();
  for (size_t i = 0; i < cut().units.size(); ++i) {
    const CutUnit& unit = cut().units[i];
    const Traits& traits = step_plan.traits(i);
    if (traits.momentum != Home::compressor || traits.result == UpdateRule::momentum) continue;
    const bool engaged = step_plan.engaged(unit);
    for (const int id : unit.segments) {
      const Segment& segment = parameters_.segment(id);
      saved.push_back({.name = "momentum/" + segment.name,
                       .tensor = FlatParameters::view(parameters_.state("momentum"), segment),
                       .on_resize = engaged ? OnResize::redistribute_sum : OnResize::repeat,
                       .check = engaged ? check_bounded : ValueCheck()});
    }
  }
  if (!cut().units.empty())
    saved.push_back({.name = "engaged",
                     .tensor = step_plan.engaged_segments(),
                     .sharing = Sharing::shared,
                     .check = check_counts});
  saved.push_back(
      {.name = "applied", .tensor = counters_, .sharing = Sharing::shared, .check = check_counts});
  saved.push_back({.name = "last_lr",
                   .tensor = last_lr_,
                   .sharing = Sharing::shared,
                   .check = check_not_negative});
  return saved;
}

std::string GradientAveraging::layout() const {
  return units_.memory().has_unit_state() ? std::to_string(cut().hash) : "";
}

// ---------------------------------------------------------------- comm thread

void GradientAveraging::exchange() {
  Courier& courier = comm_thread_.courier();
  courier.begin(parameters_.parameter_count() * size_of(parameters_.dtype()), communicator_.size());
  courier.settle();
  health_.reset();
  plan_step();
  outcome_ = comm_thread_.agree(loss_event_, loss_, units_.step_plan().hash(), begin_.step);
  if (outcome_ == Outcome::skipped) return;
  units_.run([this](int item) { measure(item); }, [this](int item) { prepare(item); }, courier);
  ++*counters_.data<int64_t>();
  *last_lr_.data<double>() = begin_.lr;
  units_.end(courier);
  probe_.count_ages();
  if (probe_.due(begin_.step)) health_ = probe_.measure(courier);
  exchanged_.record(comm_.stream);
}

void GradientAveraging::plan_step() {
  units_.begin({.step = begin_.step,
                .applied = *counters_.data<int64_t>(),
                .epoch = begin_.epoch,
                .rank = communicator_.rank(),
                .ranks = communicator_.size(),
                .summands = summands(),
                .lr = begin_.lr,
                .ratio = options_.ratio ? options_.ratio(begin_.epoch) : 1.0,
                .last_lr = *last_lr_.data<double>(),
                .seed = comm_.seed},
               {.units = static_cast<int>(cut().units.size()),
                .all = readiness_.items(),
                .item_of = readiness_.item_of(),
                .measured_first = local_.needs_whole_norm() ? readiness_.awaited_items() : 0});
}

/// Measures an item whose gradients are complete.
void GradientAveraging::measure(int item) {
  Courier& courier = comm_thread_.courier();
  readiness_.event(item).wait(comm_.stream);
  StreamWatch::Mark begin = courier.watch().mark();
  local_.measure(readiness_.segments_of(item));
  local_.fetch();
  courier.watch().then(std::move(begin), [this, &courier, item](const StreamWatch::Span& span) {
    courier.cost.encode_ms += span.ms();
    units_.measured(item);
  });
}

void GradientAveraging::prepare(int item) {
  const auto index = static_cast<size_t>(item);
  const StepPlan& step_plan = units_.step_plan();
  const bool unit = index < cut().units.size();
  Courier& courier = comm_thread_.courier();
  const bool compressed = unit && step_plan.rounds()[index].compressed;
  StreamWatch::Mark begin = courier.watch().mark();
  bool finite = true;
  for (const int id : readiness_.segments_of(item)) {
    if (local_.check(id, courier.cost)) continue;
    finite = false;
    if (!compressed) local_.clear(id);
  }
  if (compressed && step_plan.traits(index).squares)
    squares_.finish(comm_.stream, cut().units[index].segments);
  local_.clip(readiness_.segments_of(item), squares_.arena());
  courier.watch().then(std::move(begin), [&courier](const StreamWatch::Span& span) {
    courier.cost.encode_ms += span.ms();
  });
  if (compressed) {
    units_.memory().unit(item).finite = finite;
    if (probe_.due(begin_.step)) probe_.keep(item);
    units_.encode(item, 0, courier);
  } else if (unit) {
    units_.release(item);
  }
}

}  // namespace wisp
