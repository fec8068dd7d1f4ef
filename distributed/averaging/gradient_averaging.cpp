#include "distributed/averaging/gradient_averaging.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/clock.h"
#include "core/error.h"

namespace wisp {
namespace {

constexpr double kForever = 1e12;  // microseconds; backward decides how long it takes

bool any(std::span<const Method> methods, bool Traits::*trait) {
  for (const Method& method : methods) {
    if (method.compressor->traits().*trait) return true;
  }
  return false;
}

ClipOptions local_clip(ClipOptions clip, std::span<const Method> methods) {
  if (!clips_locally(clip, methods)) clip.norm = 0.0;
  return clip;
}

ClipOptions mean_clip(ClipOptions clip, std::span<const Method> methods) {
  if (clips_locally(clip, methods)) clip.norm = 0.0;
  clip.local_factor = 0.0;
  return clip;
}

std::vector<Compressor*> pointers(const std::vector<Method>& methods) {
  std::vector<Compressor*> compressors;
  for (const Method& method : methods) compressors.push_back(method.compressor.get());
  return compressors;
}

}  // namespace

bool clips_locally(const ClipOptions& clip, std::span<const Method> methods) {
  bool locally = clip.where == ClipWhere::local;
  for (const Method& method : methods) {
    const Clipping clipping = method.compressor->traits().clipping;
    WISP_CHECK(
        clip.norm == 0.0 || clip.where != ClipWhere::mean || clipping != Clipping::local_only,
        "the mean gradient cannot be clipped: method ", method.name,
        " keeps a residual or a momentum, which would not get back what is cut off, or "
        "leaves no gradient; clip each worker's own");
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
      compressors_(pointers(methods_)),
      options_(std::move(options)),
      trace_(trace),
      plan_(make_plan(parameters.segments(), size_of(parameters.dtype()), method_of,
                      planned(methods_), options_.buckets)),
      memory_(comm, parameters, plan_, compressors_, communicator.rank(), communicator.size()),
      wire_(communicator, comm, memory_, parameters),
      local_(comm, parameters, local_clip(options_.clip, methods_), communicator.size()),
      mean_(compute, parameters, mean_clip(options_.clip, methods_), 1),
      squares_(compute, parameters, any(methods_, &Traits::squares)),
      readiness_(parameters, plan_),
      step_plan_(comm, parameters, plan_, compressors_, options_.guard),
      probe_(comm, parameters, plan_, compressors_, memory_, communicator.size(),
             options_.probe_every),
      counters_(comm.zeros({1}, DType::i64)),
      last_lr_(comm.zeros({1}, DType::f64)),
      status_(communicator, comm),
      queue_([threads = comm.threads] { omp_set_num_threads(threads); }) {
  for (const Segment& segment : parameters.segments()) {
    all_segments_.push_back(segment.id);
    bytes_raw_ += segment.numel * size_of(parameters.dtype());
  }
  parameters_.on_grad_ready([this](const Segment& segment) { gradient_ready(segment); });
  communicator_.on_progress([this] { inbox_.ring(); });
}

GradientAveraging::~GradientAveraging() {
  inbox_.close();
  parameters_.on_grad_ready({});
  communicator_.on_progress({});
}

// ---------------------------------------------------------------- compute thread

void GradientAveraging::begin(const StepBegin& info) {
  begin_ = info;
  squares_.begin();
  readiness_.begin();
  inbox_.clear();
  posted_ = false;
}

void GradientAveraging::forward_done(const Tensor& loss) {
  loss_ = loss;
  loss_event_.record(compute_.stream);
  if (!options_.overlap) return;
  queue_.post([this] { exchange(); });
  posted_ = true;
}

void GradientAveraging::gradient_ready(const Segment& segment) {
  if (const auto item = readiness_.complete(segment, compute_.stream)) inbox_.post(*item);
}

Outcome GradientAveraging::before_update() {
  readiness_.check_complete();
  const double begin = now_us();
  if (!posted_) queue_.post([this] { exchange(); });
  queue_.drain();
  const double end = now_us();
  courier_.cost.wait_ms = (end - begin) * 1e-3;
  trace_.span(Lane::wait, "wait", begin, end, begin_.step, 0);
  if (mean_.enabled() && outcome_ != Outcome::skipped) {
    mean_.measure(all_segments_);
    compute_.stream.synchronize();
    mean_.clip(all_segments_);
  }
  courier_.cost.clip_ms = (now_us() - end) * 1e-3;
  return outcome_;
}

void GradientAveraging::after_update() {}

void GradientAveraging::between_steps(const std::function<void()>& task) {
  queue_.post(task);
  queue_.drain();
}

/// A momentum that a compressor keeps is each rank's share of it once the unit is engaged; before,
/// it is the optimizer's, of the mean. One that a compressor leaves is the same on all ranks.
std::vector<SavedState> GradientAveraging::state() {
  std::vector<SavedState> saved(memory_.state().begin(), memory_.state().end());
  for (size_t i = 0; i < plan_.units.size(); ++i) {
    const Traits& traits = step_plan_.traits(i);
    if (traits.momentum != Home::compressor || traits.result == UpdateRule::momentum) continue;
    const bool engaged = step_plan_.engaged(plan_.units[i]);
    for (const int id : plan_.units[i].segments) {
      const Segment& segment = parameters_.segments()[static_cast<size_t>(id)];
      saved.push_back({"momentum/" + segment.name,
                       FlatParameters::view(parameters_.state("momentum"), segment),
                       Sharing::per_rank, engaged ? OnResize::redistribute_sum : OnResize::repeat});
    }
  }
  if (!plan_.units.empty())
    saved.push_back({"engaged", step_plan_.engaged_segments(), Sharing::shared});
  saved.push_back({"applied", counters_, Sharing::shared});
  saved.push_back({"last_lr", last_lr_, Sharing::shared});
  return saved;
}

std::string GradientAveraging::layout() const {
  return memory_.has_unit_state() ? std::to_string(plan_.hash) : "";
}

// ---------------------------------------------------------------- comm thread

void GradientAveraging::exchange() {
  try {
    courier_.cost = {};
    health_.reset();
    plan_step();
    if (!agree_on_status()) return;
    pump();
    probe_.count_ages(step_plan_.rounds());
    if (probe_.due(info_.step))
      health_ = probe_.measure(communicator_, step_plan_.rounds(),
                               [this](Pending& pending) { courier_.await(pending); });
  } catch (const Inbox::Closed&) {
    throw;  // the compute thread knows the cause, and tells the others
  } catch (const std::exception& failure) {
    communicator_.abort(failure.what());
    throw;
  }
}

void GradientAveraging::plan_step() {
  info_.step = begin_.step;
  info_.applied = *counters_.data<int64_t>();
  info_.rank = communicator_.rank();
  info_.workers = communicator_.size();
  info_.epoch = begin_.epoch;
  info_.lr = begin_.lr;
  info_.last_lr = *last_lr_.data<double>();
  info_.ratio = options_.ratio ? options_.ratio(begin_.epoch) : 1.0;
  info_.seed = comm_.seed;
  if (step_plan_.make(info_)) wire_.fit(step_plan_.slots(), step_plan_.rounds());
  memory_.fit(step_plan_.rounds(), compressors_, info_);
  courier_.cost.bytes_raw = bytes_raw_;
  courier_.cost.bytes_dense = std::llround(
      bytes_on_wire(Collective::all_reduce, static_cast<double>(bytes_raw_), communicator_.size()));
}

/// Slot 0. False if the step is skipped.
bool GradientAveraging::agree_on_status() {
  loss_event_.synchronize();
  const PendingPtr status = status_.start(loss_, stop_requested_, step_plan_.hash());
  courier_.finish(*status, "status", info_.step);
  outcome_ = status_.outcome(info_.step);
  return outcome_ != Outcome::skipped;
}

/// Runs the schedule: one collective in flight, and while it is, whatever became ready is encoded.
void GradientAveraging::pump() {
  const std::span<const Slot> slots = step_plan_.slots();
  prepared_.assign(static_cast<size_t>(readiness_.items()), 0);
  waiting_.clear();
  arrived_ = 0;
  double limit = 0.0;  // of the slot on the wire
  for (size_t next = 0; next < slots.size();) {
    const uint64_t seen = inbox_.events();
    const Slot& slot = slots[next];
    if (wire_.active()) {
      if (wire_.pending().ready()) {
        if (wire_.advance()) {
          finish(slot);
          ++next;
        }
        continue;
      }
    } else if (can_start(slot)) {
      if (slot.message.kind != Collective::none) {
        limit = now_us() + options_.timeout_s * 1e6;
        wire_.start(slot, step_plan_.rounds(), info_.step);
      } else {
        decode(slot);
        ++next;
      }
      continue;
    }
    if (const int item = inbox_.take(); item >= 0) {
      take(item);
    } else if (!wire_.active()) {
      inbox_.wait(seen, kForever);
    } else if (const double now = now_us(); now < limit) {
      inbox_.wait(seen, std::min(wire_.pending().ready_at_us(), limit) - now);
    } else {
      wire_.advance();  // throws, naming who did not come
    }
  }
  ++*counters_.data<int64_t>();
  *last_lr_.data<double>() = info_.lr;
}

bool GradientAveraging::can_start(const Slot& slot) const {
  for (const int unit : slot.units) {
    if (!prepared_[static_cast<size_t>(unit)]) return false;
  }
  for (const int id : slot.dense) {
    if (!prepared_[static_cast<size_t>(readiness_.item_of(id))]) return false;
  }
  return true;
}

/// An item's gradients are complete: measure them, then prepare it, at once or when the whole norm
/// is known.
void GradientAveraging::take(int item) {
  const double begin = now_us();
  readiness_.event(item).wait(comm_.stream);
  local_.measure(readiness_.segments_of(item));
  comm_.stream.synchronize();
  courier_.cost.encode_ms += (now_us() - begin) * 1e-3;
  ++arrived_;
  waiting_.push_back(item);
  if (local_.needs_whole_norm() && arrived_ < readiness_.awaited_items()) return;
  for (const int ready : waiting_) prepare(ready);
  waiting_.clear();
}

void GradientAveraging::prepare(int item) {
  const auto index = static_cast<size_t>(item);
  const bool unit = index < plan_.units.size();
  const bool compressed = unit && step_plan_.rounds()[index].compressed;
  const double begin = now_us();
  bool finite = true;
  for (const int id : readiness_.segments_of(item)) {
    if (local_.finite(id)) continue;
    finite = false;
    courier_.cost.nonfinite.push_back(parameters_.segments()[static_cast<size_t>(id)].name);
    if (!compressed) local_.clear(id);
  }
  if (compressed && step_plan_.traits(index).squares)
    squares_.finish(comm_.stream, plan_.units[index].segments);
  local_.clip(readiness_.segments_of(item), squares_.arena());
  if (!compressed) comm_.stream.synchronize();  // dense segments may travel from here on
  courier_.cost.encode_ms += (now_us() - begin) * 1e-3;
  if (compressed) {
    memory_.unit(item).finite = finite;
    if (probe_.due(info_.step)) probe_.keep(item);
    encode(item, 0);
  }
  prepared_[index] = 1;
}

void GradientAveraging::encode(int index, int round) {
  const PlannedUnit& planned = plan_.units[static_cast<size_t>(index)];
  Compressor& compressor = compressor_of(planned);
  const Message& message =
      step_plan_.rounds()[static_cast<size_t>(index)].messages[static_cast<size_t>(round)];
  Unit& unit = memory_.unit(index);
  const double begin = now_us();
  if (round == 0 && !step_plan_.engaged(planned)) {
    if (info_.applied > 0) compressor.engage(comm_, unit, info_);
    step_plan_.engage(planned);
  }
  const std::span<const Outlet> outlets = memory_.outlets(index, message);
  compressor.encode(comm_, unit, info_, round, outlets);
  comm_.stream.synchronize();
  const double end = now_us();
  courier_.cost.encode_ms += (end - begin) * 1e-3;
  if (!trace_.records(info_.step)) return;
  int64_t bytes = 0;
  for (size_t outlet = 0; outlet < outlets.size(); ++outlet)
    bytes += memory_.used(index, message, outlet);
  trace_.span(Lane::encode, planned.name(parameters_.segments()), begin, end, info_.step, bytes);
}

void GradientAveraging::finish(const Slot& slot) {
  courier_.cost.bytes_encoded += wire_.encoded_bytes();
  courier_.cost.encode_ms += wire_.seal_us() * 1e-3;
  courier_.cost.decode_ms += wire_.check_us() * 1e-3;
  courier_.count(wire_.transfer(), wire_.wire_us(), concat("bucket ", slot.bucket), info_.step);
  decode(slot);
}

void GradientAveraging::decode(const Slot& slot) {
  for (size_t i = 0; i < slot.units.size(); ++i) {
    const int index = slot.units[i];
    const PlannedUnit& planned = plan_.units[static_cast<size_t>(index)];
    const bool silent = slot.message.kind == Collective::none;
    const double begin = now_us();
    decode_slot(slot, info_.step, [&] {
      compressor_of(planned).decode(comm_, memory_.unit(index), info_, slot.round,
                                    silent ? std::span<const Payload>{} : wire_.payloads(i));
      comm_.stream.synchronize();
    });
    const double end = now_us();
    courier_.cost.decode_ms += (end - begin) * 1e-3;
    if (trace_.records(info_.step))
      trace_.span(Lane::decode, planned.name(parameters_.segments()), begin, end, info_.step);
    const UnitRounds& rounds = step_plan_.rounds()[static_cast<size_t>(index)];
    if (slot.round + 1 < static_cast<int>(rounds.messages.size())) encode(index, slot.round + 1);
  }
}

}  // namespace wisp
