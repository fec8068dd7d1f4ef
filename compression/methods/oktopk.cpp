// Ok-Topk: a sparse all-reduce of about k values whose volume does not grow with the number of
// workers N. The first updates are dense; then per worker, with gradient g and residual e:
//   a <- e + g
//   t <- the k-th largest |a|, every 32 updates; else while more than 4k/3 pass, up to five times:
//     t <- 1.03 t
//   L <- {i: |a_i| >= t};  t <- t / 1.012 if |L| < 2k/3, 1.012 t if |L| > 5k/4
//   every rank owns a region of the positions: L's parts travel to their owners, who add them up
//   every 32 updates: S <- the k largest sums of all;  T <- the smallest of them
//   else: S <- {i: |sum_i| >= T};  T <- T / 1.008 if |S| < 2k/3, 1.008 T if |S| > 4k/3
//   all owners' parts of S travel to everybody: the result
//   e <- a, but without a on the elements of L that were sent and are in S
// Regions are balanced every 64 updates. Updates count from the first one that is not dense.
// Volume: a rank sends each owner at most C = max(1, 3k/2N) entries, and an owner sends on its C
// largest sums at most. An entry is a position and a value, so a rank sends at most 4 C (N - 1)
// numbers, less than 6 k if k >= 2N/3. Entries beyond this stay in the residual. Every 32 updates
// an owner sends on its k largest sums, which must include its part of the k largest of all.
// Source: Li & Hoefler 2022 (PPoPP); steps, bounds, factors and intervals as in the authors' code
// for VGG. Ours: the limits. C replaces their exchange that evens out the owners' results; 4k/3
// limits L, where they send all that passes; every 32 updates they gather all sums.
#include <algorithm>
#include <utility>

#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/follow_threshold.h"
#include "compression/sparse/pack.h"
#include "compression/sparse/regions.h"

namespace wisp::oktopk {
namespace {

constexpr int64_t kEstimateEvery = 32;  // in updates
constexpr int64_t kBalanceEvery = 64;

constexpr SparseWire kWire(WireFormat::f32, Indices::u32);

Room whole_room(const StepInfo& info) { return {.ratio = info.ratio}; }  // k
Room own_room(const StepInfo& info) { return {.ratio = info.ratio, .times = 4, .over = 3}; }
/// Room for the entries that pass, plus one that shows that more would pass.
Room passing_room(const StepInfo& info) {
  Room room = own_room(info);
  room.more = 1;
  return room;
}
Room part_room(const StepInfo& info) {  // C
  return {.ratio = info.ratio, .times = 3, .over = 2 * int64_t{info.ranks}};
}
Room sum_room(const StepInfo& info) {
  Room room = part_room(info);
  room.copies = info.summands;
  return room;
}
Room pair_room(const StepInfo& info) { return {.ratio = info.ratio, .copies = 2}; }

int64_t fields(const UnitSpec& spec) { return std::ssize(spec.fields); }

/// Scratch while payloads of room `each` are added to a list of room `sum`.
struct Adding {
  std::byte* reading;
  std::byte* beside;

  Adding(Cursor& cursor, const UnitSpec& spec, const Room& sum, const Room& each)
      : reading(cursor.take<std::byte>(kWire.scratch_bytes(spec, each))),
        beside(cursor.take_last([&] { return merge_lists_bytes(spec, sum, each); })) {}
};

/// Scratch of a unit.
struct Lists {
  SparseList own;   // L
  SparseList sent;  // the part of L that is sent; before that, the selected part
  SparseList sum;   // sums of the own region; finally S
  SparseList passing;
  Range* parts;  // ranges of `sent`, by rank, then by field
  int64_t* count;
  float* measured;  // one per field
  std::byte* work;  // scratch of a selection, of pack, or of adding and reading payloads

  Lists(Cursor& cursor, const UnitSpec& spec, const StepInfo& info)
      : own(cursor, fields(spec), own_room(info).of(spec)),
        sent(cursor, fields(spec), own_room(info).of(spec)),
        sum(cursor, fields(spec), sum_entries(spec, info)),
        passing(cursor, fields(spec),
                std::max({sum_entries(spec, info), passing_room(info).of(spec),
                          pair_room(info).of(spec)})),
        parts(cursor.take<Range>(fields(spec) * info.ranks)),
        count(cursor.take<int64_t>(fields(spec))),
        measured(cursor.take<float>(fields(spec))),
        work(cursor.take_last([&] { return work_bytes(spec, info); })) {}

 private:
  static int64_t sum_entries(const UnitSpec& spec, const StepInfo& info) {
    return std::max(sum_room(info).of(spec), whole_room(info).of(spec));
  }
  static int64_t work_bytes(const UnitSpec& spec, const StepInfo& info) {
    const Room whole = whole_room(info), passing = passing_room(info), sum = sum_room(info),
               part = part_room(info), pair = pair_room(info);
    return std::max({select_list_bytes(spec, whole, Selection::Kind::exact),
                     select_list_bytes(spec, passing, Selection::Kind::threshold),
                     split_list_bytes(spec, passing), split_list_bytes(spec, sum),
                     split_list_bytes(spec, pair), layout_bytes<Adding>(spec, sum, part),
                     layout_bytes<Adding>(spec, whole, whole)});
  }
};

Room most_local(const StepInfo& info) { return {.ratio = info.ratio, .times = 5, .over = 4}; }
Room most_global(const StepInfo& info) { return {.ratio = info.ratio, .times = 4, .over = 3}; }

enum class Phase { balance, reduce, gather };

class Oktopk final : public Compressor {
 public:
  explicit Oktopk(const OktopkOptions& options) : options_(options) {}

  Traits traits() const override { return {.sparse = true}; }
  bool started(const StepInfo& info) const override { return info.applied >= options_.start_after; }
  int64_t period() const override { return kBalanceEvery; }
  std::vector<StateSpec> state(const UnitSpec& spec, int) const override {
    // With more workers each has a smaller share of the gradient, so local thresholds are divided.
    const auto of_unit = [](const char* name, DType dtype, int64_t numel, Sharing sharing,
                            ValueCheck check) {
      return StateSpec{.name = name,
                       .per_element = false,
                       .dtype = dtype,
                       .shape = {numel},
                       .sharing = sharing,
                       .check = std::move(check)};
    };
    std::vector<int64_t> numels;
    for (const Field& field : spec.fields) numels.push_back(field.numel);
    const auto check_own_cuts = [numels](const Tensor& cuts) { check_cuts(numels, cuts); };
    return {
        {.name = "residual"},
        of_unit("local_threshold", DType::f32, fields(spec), Sharing::per_rank, check_not_negative),
        of_unit("threshold", DType::f32, fields(spec), Sharing::shared, check_not_negative),
        of_unit("cuts", DType::i64, fields(spec) * kCutWords, Sharing::shared, check_own_cuts)};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<Lists>(spec, info);
  }
  int rounds(const UnitSpec&, const StepInfo& info) const override {
    return balances(info) ? 3 : 2;
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    const Phase phase = phase_of(info, round);
    if (phase == Phase::balance)
      return {.kind = Collective::all_reduce,
              .dtype = DType::i64,
              .bytes = 8 * fields(spec) * kCutWords};
    return {
        .kind = phase == Phase::reduce ? Collective::all_to_all : Collective::all_gather,
        .bytes = kWire.capacity(spec, phase == Phase::reduce ? part_room(info) : result_room(info)),
        .variable = true};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const Step step{context.stream, unit, unit.spec, info,
                    lay_out<Lists>(unit.scratch, unit.spec, info)};
    const Lists& lists = step.lists;
    if (round == 0) select(step);
    switch (phase_of(info, round)) {
      case Phase::balance:
        return propose_cuts(step.stream, step.spec, lists.own, unit.finite, step.cuts(),
                            reinterpret_cast<int64_t*>(outlets[0].data));
      case Phase::reduce:
        return send_parts(step, outlets);
      case Phase::gather:
        return send_results(step, outlets[0]);
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const Step step{context.stream, unit, unit.spec, info,
                    lay_out<Lists>(unit.scratch, unit.spec, info)};
    const Message message = this->message(unit.spec, info, round);
    WISP_CHECK(message.kind != Collective::all_reduce || payloads[0].bytes == message.bytes,
               "oktopk: ", payloads[0].bytes, " bytes of borders, expected ", message.bytes);
    switch (phase_of(info, round)) {
      case Phase::balance:
        return adopt_cuts(step.stream, step.spec,
                          reinterpret_cast<const int64_t*>(payloads[0].data), info.summands,
                          step.cuts());
      case Phase::reduce:
        return add_parts(step, payloads);
      case Phase::gather:
        return estimates(info) ? take_largest(step, payloads) : add_results(step, payloads);
    }
  }

  void release(Context& context, Unit& unit, const StepInfo&) override {
    hand_over(context, unit, unit.state->tensors[0], 1.0);
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

  bool every(int64_t updates, const StepInfo& info) const {
    return (info.applied - options_.start_after) % updates == 0;
  }
  bool balances(const StepInfo& info) const { return every(kBalanceEvery, info); }
  bool estimates(const StepInfo& info) const { return every(kEstimateEvery, info); }
  Phase phase_of(const StepInfo& info, int round) const {
    if (balances(info) && round == 0) return Phase::balance;
    return round + 1 == rounds({}, info) ? Phase::gather : Phase::reduce;
  }
  /// Capacity of the list that an owner sends on.
  Room result_room(const StepInfo& info) const {
    return estimates(info) ? whole_room(info) : part_room(info);
  }

  /// Selects L, and sets t for the next step.
  void select(const Step& step) const {
    const StepInfo& info = step.info;
    const SparseList own = step.lists.own, largest = step.lists.sent, passing = step.lists.passing;
    const bool due = estimates(info);
    const Room room = due ? whole_room(info) : passing_room(info);
    Selection selection;
    if (!due) selection = {.kind = Selection::Kind::threshold, .on_device = step.local()};
    const auto source_of = [&](const Field&) { return Undecided(step.unit); };
    const auto from = select_list(step.stream, step.spec, room, info, selection, source_of, passing,
                                  step.lists.work);
    take_values(step.stream, from, WireFormat::f32, passing);
    float* smallest = step.lists.measured;
    if (step.unit.finite && !due) {
      measure_list(step.stream, step.spec, room, passing, smallest);
      raise_thresholds(step.stream, step.spec, own_room(info), passing, smallest,
                       options_.step_factor, step.local());
    }
    split_list(step.stream, step.spec, info, passing, room, largest, own_room(info), nullptr,
               step.lists.work);
    if (step.unit.finite) {
      measure_list(step.stream, step.spec, own_room(info), largest, smallest);
      set_thresholds(step.stream, step.spec, smallest, due, step.local());
    }
    pass_list(step.stream, step.spec, own_room(info), largest, step.local(), own);
    if (!step.unit.finite) return;
    follow_thresholds(step.stream, step.spec, most_local(info), &own.range->count,
                      sizeof(Range) / sizeof(int64_t), options_.local_factor, step.local());
  }

  static void send_parts(const Step& step, std::span<const Outlet> outlets) {
    const Lists& lists = step.lists;
    SparseList part = lists.sent;
    take_parts(step.stream, step.spec, step.info, lists.own, own_room(step.info),
               part_room(step.info), step.cuts(), part, lists.parts);
    part.range = lists.parts;
    for (const Outlet& outlet : outlets) {
      kWire.pack(step.stream, step.spec, part_room(step.info), part, outlet, lists.work);
      part.range += fields(step.spec);
    }
  }

  /// Adds up the own region's sums, in rank order.
  static void add_parts(const Step& step, std::span<const Payload> payloads) {
    const SparseList sum = step.lists.sum;
    const Room part = part_room(step.info), room = sum_room(step.info);
    const auto adding = lay_out<Adding>(step.lists.work, step.spec, room, part);
    clear_list(step.stream, step.spec, sum);
    for (const Payload& payload : payloads) {
      const SparseList received =
          kWire.unpack(step.stream, step.spec, part, payload, adding.reading);
      merge_lists(step.stream, step.spec, sum, room, received, part, sum, room, adding.beside);
    }
  }

  /// Sends the own sums that pass or, in a step that estimates T, those that can be among the k
  /// largest of all.
  void send_results(const Step& step, const Outlet& outlet) const {
    const Lists& lists = step.lists;
    const Room room = result_room(step.info), of_sum = sum_room(step.info);
    SparseList from = lists.sum, into = lists.passing;
    if (!estimates(step.info)) {
      pass_list(step.stream, step.spec, of_sum, from, step.global(), into);
      std::swap(from, into);
    }
    split_list(step.stream, step.spec, step.info, from, of_sum, into, room, nullptr, lists.work);
    kWire.pack(step.stream, step.spec, room, into, outlet, lists.work);
  }

  /// Takes the k largest sums of all, and sets T.
  static void take_largest(const Step& step, std::span<const Payload> payloads) {
    const Lists& lists = step.lists;
    const SparseList largest = lists.sum, merged = lists.passing;
    const Room room = whole_room(step.info), pair = pair_room(step.info);
    const auto adding = lay_out<Adding>(lists.work, step.spec, room, room);
    clear_list(step.stream, step.spec, largest);
    for (const Payload& payload : payloads) {
      const SparseList received =
          kWire.unpack(step.stream, step.spec, room, payload, adding.reading);
      merge_lists(step.stream, step.spec, largest, room, received, room, merged, pair,
                  adding.beside);
      split_list(step.stream, step.spec, step.info, merged, pair, largest, room, nullptr,
                 lists.work);
    }
    measure_list(step.stream, step.spec, room, largest, step.global());
    clear_fields(step.stream, step.spec, step.unit.gradient);
    add_list(step.stream, step.spec, room, largest, 1.0f, step.unit.gradient.data<float>());
    add_list(step.stream, step.spec, own_room(step.info), lists.sent, -1.0f, step.residual(),
             &largest);
  }

  void add_results(const Step& step, std::span<const Payload> payloads) const {
    const Room part = part_room(step.info);
    clear_fields(step.stream, step.spec, step.unit.gradient);
    for (size_t i = 0; i < payloads.size(); ++i) {
      const SparseList received =
          kWire.unpack(step.stream, step.spec, part, payloads[i], step.lists.work);
      add_list(step.stream, step.spec, part, received, 1.0f, step.unit.gradient.data<float>());
      add_list(step.stream, step.spec, own_room(step.info), step.lists.sent, -1.0f, step.residual(),
               &received);
      count_list(step.stream, step.spec, received, i > 0, step.lists.count);
    }
    follow_thresholds(step.stream, step.spec, most_global(step.info), step.lists.count, 1,
                      options_.global_factor, step.global());
  }

  OktopkOptions options_;
};

OktopkOptions bind_options(Config& config) {
  OktopkOptions options;
  options.start_after = bind_start_after(config, options.start_after);
  config.bind("compression.local_factor", options.local_factor,
              "factor of a worker's threshold after a step in which too few or too many elements "
              "passed, 1 or more");
  config.bind("compression.global_factor", options.global_factor,
              "factor of the threshold of sums after a step in which too few or too many passed, 1 "
              "or more");
  config.bind("compression.step_factor", options.step_factor,
              "factor of a worker's threshold within a step, applied up to five times while too "
              "many pass, 1 or more");
  return options;
}

const CompressorRegistration oktopk_registration(
    "oktopk", "sparse all-reduce of about k values, balanced over the ranks (Li & Hoefler 2022)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks the keys of the ratio
      return make_oktopk(bind_options(config), config);
    });

}  // namespace
}  // namespace wisp::oktopk

namespace wisp {

std::unique_ptr<Compressor> make_oktopk(const OktopkOptions& options, const Config& places) {
  for (const auto& [key, factor] : {std::pair("compression.local_factor", options.local_factor),
                                    std::pair("compression.global_factor", options.global_factor),
                                    std::pair("compression.step_factor", options.step_factor)})
    places.expect(factor >= 1.0, key, factor, "1 or more");
  check_start_after(options.start_after, places);
  return std::make_unique<oktopk::Oktopk>(options);
}

}  // namespace wisp
