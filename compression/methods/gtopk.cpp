// gTop-k: the k largest elements of the sum, found in a tree. Per worker, with gradient g and
// residual e:
//   a <- e + g;  L <- the k largest of |a|;  T <- a on L
//   in log2(workers) rounds pairs meet: the receiver's T <- the k largest of |T + sender's T|
//   rank 0's T is the result, G: the same pairs pass it down, the last ones first
//   e <- a, but without a on the elements of L that are in G
// The number of workers is arbitrary: a rank without partner waits for a round. No rank sends more
// than log2(workers) lists, as rank 0 does. Source: Shi et al. 2019 (ICDCS); steps as in the
// authors' code. Ours: an element can be rejected in one branch of the tree and arrive through
// another. Its owners then count it as sent, so the node that rejected it adds the rejected sum to
// its own residual, and nothing is lost. Positions are 32-bit integers (theirs are floats, exact to
// 2^24).
#include "compression/hand_over.h"
#include "compression/methods/methods.h"
#include "compression/ratio_schedule.h"
#include "compression/sparse/pack.h"

namespace wisp {
namespace {

/// Number of rounds up the tree; the rounds down are as many.
int tree_rounds(int ranks) {
  int rounds = 0;
  for (int64_t reach = 1; reach < ranks; reach *= 2) ++rounds;
  return rounds;
}

/// The ranks that a rank sends to and receives from in a round; -1: none.
struct Partners {
  int to = -1, from = -1;
  Partners(const StepInfo& info, int round) {
    const int up = tree_rounds(info.ranks);
    if (up == 0) return;
    const int64_t reach = int64_t{1} << (round < up ? round : 2 * up - 1 - round);
    const int64_t other = info.rank + reach;
    if (info.rank % (2 * reach) == reach) to = static_cast<int>(info.rank - reach);
    if (info.rank % (2 * reach) == 0 && other < info.ranks) from = static_cast<int>(other);
    if (round >= up) std::swap(to, from);
  }
};

constexpr SparseWire kWire(WireFormat::f32, Indices::u32);

Room room_of(const StepInfo& info) { return {info.ratio}; }
Room pair_room(const StepInfo& info) { return {.ratio = info.ratio, .copies = 2}; }

/// Scratch while another rank's list is joined to the own one.
struct Joining {
  std::byte* reading;
  std::byte* beside;

  Joining(Cursor& cursor, const UnitSpec& spec, const Room& room)
      : reading(cursor.take<std::byte>(kWire.scratch_bytes(spec, room))),
        beside(cursor.take<std::byte>(
            std::max(merge_lists_bytes(spec, room, room), split_list_bytes(spec, room)))) {}
};

/// Scratch of a unit.
class Lists {
 public:
  SparseList own;     // L
  SparseList merged;  // T after other lists were added; G
  SparseList sum;     // T + sender's T, before the selection
  std::byte* work;    // scratch of a selection, of pack, or of joining a list

  Lists(Cursor& cursor, const UnitSpec& spec, const StepInfo& info, Selection::Kind kind)
      : own(cursor, fields(spec), room_of(info).of(spec)),
        merged(cursor, fields(spec), room_of(info).of(spec)),
        sum(cursor, fields(spec), pair_room(info).of(spec)),
        work(cursor.take<std::byte>(std::max({select_list_bytes(spec, room_of(info), kind),
                                              split_list_bytes(spec, pair_room(info)),
                                              layout_bytes<Joining>(spec, room_of(info))}))),
        fields_(fields(spec)),
        pair_(pair_room(info).of(spec)),
        rejected_(cursor.take<std::byte>(tree_rounds(info.ranks) * rejected_bytes())) {}

  SparseList rejected(int round) const {
    return lay_out<SparseList>(rejected_ + round * rejected_bytes(), fields_, pair_);
  }
  /// T at the beginning of a round.
  SparseList current(const StepInfo& info, int round) const {
    for (int r = 0; r < round; ++r)
      if (Partners(info, r).from >= 0) return merged;
    return own;
  }

 private:
  static int64_t fields(const UnitSpec& spec) { return static_cast<int64_t>(spec.fields.size()); }
  int64_t rejected_bytes() const { return layout_bytes<SparseList>(fields_, pair_); }

  int64_t fields_, pair_;
  std::byte* rejected_;  // a list for each round up the tree
};

class Gtopk final : public Compressor {
 public:
  explicit Gtopk(const Selection& selection) : selection_(selection) {}

  Traits traits() const override { return {.sparse = true}; }
  std::vector<StateSpec> state(const UnitSpec&, int) const override {
    return {{.name = "residual"}};
  }
  int64_t scratch_bytes(const UnitSpec& spec, const StepInfo& info) const override {
    return layout_bytes<Lists>(spec, info, selection_.kind);
  }
  int rounds(const UnitSpec&, const StepInfo& info) const override {
    return std::max(1, 2 * tree_rounds(info.ranks));
  }
  Message message(const UnitSpec& spec, const StepInfo& info, int round) const override {
    const Partners partners(info, round);
    return {.kind = Collective::pair,
            .bytes = kWire.capacity(spec, room_of(info)),
            .variable = true,
            .to = partners.to,
            .from = partners.from};
  }

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const auto lists = lay_out<Lists>(unit.scratch, unit.spec, info, selection_.kind);
    const Room room = room_of(info);
    if (round == 0) {
      const auto source_of = [&](const Field&) { return Undecided(unit); };
      const auto fields = select_list(context.stream, unit.spec, room, info, selection_, source_of,
                                      lists.own, lists.work);
      take_values(context.stream, fields, WireFormat::f32, lists.own);
    }
    if (!outlets.empty()) {
      kWire.pack(context.stream, unit.spec, room, lists.current(info, round), outlets[0],
                 lists.work);
    }
  }

  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const Stream& stream = context.stream;
    const UnitSpec& spec = unit.spec;
    const auto lists = lay_out<Lists>(unit.scratch, spec, info, selection_.kind);
    const Room room = room_of(info), pair = pair_room(info);
    if (!payloads.empty()) {
      const auto joining = lay_out<Joining>(lists.work, spec, room);
      const SparseList received = kWire.unpack(stream, spec, room, payloads[0], joining.reading);
      if (round < tree_rounds(info.ranks)) {
        const SparseList rejected = lists.rejected(round);
        merge_lists(stream, spec, lists.current(info, round), room, received, room, lists.sum, pair,
                    joining.beside);
        split_list(stream, spec, info, lists.sum, pair, lists.merged, room, &rejected, lists.work);
      } else {
        split_list(stream, spec, info, received, room, lists.merged, room, nullptr,
                   joining.beside);  // the whole list
      }
    }
    if (round + 1 == rounds(spec, info)) leave(stream, unit, info, lists);
  }

  void release(Context& context, Unit& unit, const StepInfo&) override {
    hand_over(context, unit, unit.state->tensors[0], 1.0);
  }

 private:
  /// Leaves the result, and updates the residual by it.
  static void leave(const Stream& stream, const Unit& unit, const StepInfo& info,
                    const Lists& lists) {
    const UnitSpec& spec = unit.spec;
    const Room room = room_of(info);
    const int up = tree_rounds(info.ranks);
    const SparseList result = lists.current(info, 2 * up);
    clear_fields(stream, spec, unit.gradient);
    add_list(stream, spec, room, result, 1.0f, unit.gradient.data<float>());
    float* residual = unit.state->tensors[0].data<float>();
    add_list(stream, spec, room, lists.own, -1.0f, residual, &result);
    for (int round = 0; round < up; ++round) {
      if (Partners(info, round).from >= 0)
        add_list(stream, spec, pair_room(info), lists.rejected(round), 1.0f, residual, &result);
    }
  }

  Selection selection_;
};

const CompressorRegistration gtopk_registration(
    "gtopk", "k largest values of the sum, selected pair by pair in a tree (Shi et al. 2019)",
    [](Config& config, const CompressorSetup&) -> std::unique_ptr<Compressor> {
      static_cast<void>(RatioSchedule(config));  // binds and checks the keys of the ratio
      return make_gtopk(bind_sampled(config));
    });

}  // namespace

std::unique_ptr<Compressor> make_gtopk(bool sampled) {
  return std::make_unique<Gtopk>(Selection::largest(sampled));
}

}  // namespace wisp
