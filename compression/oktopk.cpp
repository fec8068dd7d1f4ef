// Ok-Topk: a sparse all-reduce of about k values whose volume does not grow with the number of
// workers N. Per worker, with gradient g and residual e:
//   a <- e + g;  L <- {i: |a_i| >= t}                                 local threshold t
//   every rank owns a region of the positions: L's parts travel to their owners, who add them up
//   S <- {i: |sum_i| >= T}                                            global threshold T
//   all owners' S travel to everybody: the result
//   e <- a, but without a on those of L that were sent and are in S
// t and T are estimated every 32 updates; between them a threshold is scaled when its count leaves
// [2k/3, 5k/4). Regions are balanced every 64 updates.
// Volume: a rank sends each owner at most C = max(1, 3k/2N) entries, and an owner sends on at most
// C, the largest; an entry is a position and a value, so a rank sends at most 4 C (N - 1) numbers,
// less than 6 k as soon as k >= 2N/3. What is beyond stays in the residual.
// Source: Li & Hoefler 2022 (PPoPP); steps, bounds and intervals as in the authors' code. Ours: the
// limit C, in the place of their exchange that evens out the owners' results; T is the mean of the
// owners' (k/N)-th largest sums, one number each, where they gather all sums; the factor 1.05.
#include "compression/error_feedback.h"
#include "compression/follow_threshold.h"
#include "compression/oktopk_lists.h"
#include "compression/ratio_schedule.h"

namespace wisp::oktopk {
namespace {

constexpr int64_t kEstimateEvery = 32;  // updates
constexpr int64_t kBalanceEvery = 64;

enum class Phase { balance, reduce, estimate, gather };

int balances(const StepInfo& info) { return info.applied % kBalanceEvery == 0 ? 1 : 0; }
int estimates(const StepInfo& info) { return info.applied % kEstimateEvery == 0 ? 1 : 0; }

Phase phase_of(const StepInfo& info, int round) {
  if (round < balances(info)) return Phase::balance;
  if (round == balances(info)) return Phase::reduce;
  return round == balances(info) + estimates(info) ? Phase::estimate : Phase::gather;
}

class Oktopk final : public Compressor {
 public:
  Traits traits() const override { return {.sparse = true}; }
  std::vector<StateSpec> state(const UnitSpec& spec, int) const override {
    const auto of_unit = [](const char* name, DType dtype, int64_t numel, Sharing sharing) {
      return StateSpec{.name = name,
                       .per_element = false,
                       .dtype = dtype,
                       .shape = {numel},
                       .sharing = sharing,
                       .on_resize = OnResize::repeat};
    };
    return {{.name = "residual"},
            of_unit("local_threshold", DType::f32, fields(spec), Sharing::per_rank),
            of_unit("threshold", DType::f32, fields(spec), Sharing::shared),
            of_unit("cuts", DType::i64, fields(spec) * kCutWords, Sharing::shared)};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return Lists::bytes(spec, info);
  }
  int rounds(const UnitSpec&, const StepInfo& info) const override {
    return balances(info) + 1 + estimates(info) + 1;
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    const Phase phase = phase_of(info, round);
    if (phase == Phase::balance)
      return {.kind = Collective::all_reduce,
              .dtype = DType::i64,
              .bytes = 8 * fields(spec) * kCutWords};
    if (phase == Phase::estimate)
      return {.kind = Collective::all_reduce, .dtype = DType::f32, .bytes = 4 * fields(spec)};
    return {.kind = phase == Phase::reduce ? Collective::all_to_all : Collective::all_gather,
            .bytes = kWire.capacity(spec, part_room(info)),
            .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const Step step{context.stream, unit, unit.spec, info, Lists(unit.spec, info, unit.scratch)};
    const Lists& lists = step.lists;
    if (round == 0) select(step);
    switch (phase_of(info, round)) {
      case Phase::balance:
        return propose_cuts(step.stream, step.spec, lists.own(), unit.finite, step.cuts(),
                            reinterpret_cast<int64_t*>(outlets[0].data));
      case Phase::reduce:
        return send_parts(step, outlets);
      case Phase::estimate:
        split_list(step.stream, step.spec, info, lists.sum(), sum_room(info), lists.passing(),
                   share_room(info), nullptr, lists.work());
        return measure_list(step.stream, step.spec, share_room(info), lists.passing(),
                            reinterpret_cast<float*>(outlets[0].data), lists.measured());
      case Phase::gather:
        pass_list(step.stream, step.spec, sum_room(info), lists.sum(), step.global(),
                  lists.passing(), lists.work());
        split_list(step.stream, step.spec, info, lists.passing(), sum_room(info), lists.sum(),
                   part_room(info), nullptr, lists.work());
        return kWire.pack(step.stream, step.spec, part_room(info), lists.sum(), outlets[0],
                          lists.work());
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const Step step{context.stream, unit, unit.spec, info, Lists(unit.spec, info, unit.scratch)};
    const Message message = this->message(unit.spec, info, round);
    WISP_CHECK(message.kind != Collective::all_reduce || payloads[0].bytes == message.bytes,
               "oktopk: ", payloads[0].bytes, " bytes of borders or thresholds, expected ",
               message.bytes);
    switch (phase_of(info, round)) {
      case Phase::balance:
        return adopt_cuts(step.stream, step.spec,
                          reinterpret_cast<const int64_t*>(payloads[0].data), info.workers,
                          step.cuts());
      case Phase::reduce:
        return add_parts(step, payloads);
      case Phase::estimate:
        return adopt_thresholds(step.stream, step.spec,
                                reinterpret_cast<const float*>(payloads[0].data), info.workers,
                                step.global());
      case Phase::gather:
        return add_results(step, payloads);
    }
  }

 private:
  struct Step {
    const Stream& stream;
    const Unit& unit;
    const UnitSpec& spec;
    const StepInfo& info;
    Lists lists;

    float* residual() const { return unit.state->tensors[0].data<float>(); }
    float* local() const { return unit.state->tensors[1].data<float>(); }   // t, by field
    float* global() const { return unit.state->tensors[2].data<float>(); }  // T, by field
    int64_t* cuts() const { return unit.state->tensors[3].data<int64_t>(); }
  };

  /// L, and t for the next step.
  static void select(const Step& step) {
    const SparseList own = step.lists.own();
    const bool due = estimates(step.info) == 1;
    const Room room = due ? Room{step.info.ratio} : own_room(step.info);
    Selection selection;
    if (!due) selection = {.kind = Selection::Kind::threshold, .on_device = step.local()};
    const auto source_of = [&](const Field&) { return Undecided(step.unit); };
    select_list(step.stream, step.spec, room, step.info, selection, source_of, own,
                step.lists.work());
    take_values(step.stream, step.spec, room, WireFormat::f32, source_of, own);
    if (!step.unit.finite) return;
    float* measured = step.lists.measured();
    measure_list(step.stream, step.spec, room, own, measured, measured + fields(step.spec));
    follow_thresholds(step.stream, step.spec, step.info.ratio, &own.range->count,
                      sizeof(Range) / sizeof(int64_t), measured, due, step.local());
  }

  static void send_parts(const Step& step, std::span<const Outlet> outlets) {
    const Lists& lists = step.lists;
    SparseList part = lists.sent();
    take_parts(step.stream, step.spec, step.info, lists.own(), own_room(step.info),
               part_room(step.info), step.cuts(), part, lists.parts(), lists.work());
    part.range = lists.parts();
    for (const Outlet& outlet : outlets) {
      kWire.pack(step.stream, step.spec, part_room(step.info), part, outlet, lists.work());
      part.range += fields(step.spec);
    }
  }

  /// The own region's sums, in rank order.
  static void add_parts(const Step& step, std::span<const Payload> payloads) {
    const SparseList sum = step.lists.sum();
    const Room part = part_room(step.info), room = sum_room(step.info);
    std::byte* beside = step.lists.work() + kWire.scratch_bytes(step.spec, part);
    clear_list(step.stream, step.spec, room, sum);
    for (const Payload& payload : payloads) {
      const SparseList received =
          kWire.unpack(step.stream, step.spec, part, payload, step.lists.work());
      merge_lists(step.stream, step.spec, sum, room, received, part, sum, room, beside);
    }
  }

  static void add_results(const Step& step, std::span<const Payload> payloads) {
    const Room part = part_room(step.info);
    clear_fields(step.stream, step.spec, step.unit.gradient);
    for (size_t i = 0; i < payloads.size(); ++i) {
      const SparseList received =
          kWire.unpack(step.stream, step.spec, part, payloads[i], step.lists.work());
      add_list(step.stream, step.spec, part, received, 1.0f, step.unit.gradient.data<float>());
      add_common(step.stream, step.spec, own_room(step.info), step.lists.sent(), received, -1.0f,
                 step.residual());
      count_list(step.stream, step.spec, received, i > 0, step.lists.count());
    }
    if (estimates(step.info) == 1) return;
    follow_thresholds(step.stream, step.spec, step.info.ratio, step.lists.count(), 1, nullptr,
                      false, step.global());
  }
};

const CompressorRegistration registration(
    "oktopk", "balanced sparse all-reduce of about k values, owner by owner (Li & Hoefler 2022)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks its keys
      return std::make_unique<Oktopk>();
    });

}  // namespace
}  // namespace wisp::oktopk
