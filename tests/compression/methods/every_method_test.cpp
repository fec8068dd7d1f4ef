// Laws of every registered method at its defaults. A new method gets them by being registered.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "compression/forwarding_compressor.h"
#include "core/loops/parallel_teams.h"
#include "distributed/exchange/message_traffic.h"
#include "tests/support/allocation_count.h"
#include "tests/support/scalar_run.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

std::vector<std::string> registered() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    if (name != "none") names.push_back(name);
  return names;
}

/// A vector, a single element, a convolution and a product, with padding between them.
std::vector<Field> model_fields() {
  std::vector<Field> fields = layer_fields({300, 1, 64 * 9, 12 * 50});
  fields[2].rows = 64;
  fields[3].rows = 12;
  return fields;
}

int64_t arena_of(const std::vector<Field>& fields) {
  return fields.back().slices.back().offset + fields.back().slices.back().numel;
}

/// Counts a method's heap allocations in encode and decode.
class Frugal final : public ForwardingCompressor {
 public:
  Frugal(std::unique_ptr<Compressor> inner, int64_t* allocations)
      : ForwardingCompressor(std::move(inner)), allocations_(allocations) {}

  void encode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Outlet> outlets) override {
    const int64_t before = allocation_count();
    ForwardingCompressor::encode(context, unit, info, round, outlets);
    *allocations_ += allocation_count() - before;
  }
  void decode(Context& context, Unit& unit, const StepInfo& info, int round,
              std::span<const Payload> payloads) override {
    const int64_t before = allocation_count();
    ForwardingCompressor::decode(context, unit, info, round, payloads);
    *allocations_ += allocation_count() - before;
  }

 private:
  int64_t* allocations_;
};

class EveryMethod : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kWorkers = 3;
  static constexpr double kRatio = 0.05;

  static std::unique_ptr<Compressor> make() {
    return make_method(GetParam(), "",
                       {.workers = kWorkers, .momentum = 0.9, .weight_decay = 1e-4});
  }

  /// Workers with weights and momentum that are not zero.
  struct Rig : MethodRig {
    explicit Rig(std::vector<Field> fields, const Make& method = make)
        : MethodRig(kWorkers, std::move(fields), method) {
      for (int rank = 0; rank < kWorkers; ++rank) {
        for (int64_t i = 0; i < unit(rank).weight.numel(); ++i) {
          weight(rank)[i] = 0.1f * std::sin(static_cast<float>(i));
          momentum(rank)[i] = 0.1f * std::cos(static_cast<float>(i));
        }
      }
    }
    /// Also stores a momentum that is the result, as the optimizer does.
    void step(const StepInfo& info) {
      MethodRig::step(info);
      if (compressor(0).traits().result != UpdateRule::momentum) return;
      for (int rank = 0; rank < kWorkers; ++rank)
        for (const Field& field : unit(rank).spec.fields)
          for (const Slice& slice : field.slices)
            std::copy_n(gradient(rank) + slice.offset, slice.numel, momentum(rank) + slice.offset);
    }
  };

  static void give(MethodRig& rig, int64_t step) {
    for (int rank = 0; rank < kWorkers; ++rank) {
      const Floats g = noise(rig.unit(rank).gradient.numel(), step, rank);
      std::copy(g.begin(), g.end(), rig.gradient(rank));
      for (size_t i = 0; i < g.size(); ++i) rig.square(rank)[i] = g[i] * g[i];
    }
  }

  /// A rank's result: the elements of the unit, without padding.
  static Floats result(MethodRig& rig, int rank) {
    Floats values;
    for (const Field& field : rig.unit(rank).spec.fields)
      for (const Slice& slice : field.slices)
        values.insert(values.end(), rig.gradient(rank) + slice.offset,
                      rig.gradient(rank) + slice.offset + slice.numel);
    return values;
  }

  /// Whether state of a rank depends on what all workers sent, not on its gradient alone.
  static bool is_share_of_all(const StateSpec& spec) {
    return spec.name == "owner_residual" || (GetParam() == "powersgd" && spec.name == "residual");
  }

  /// All tensors of a worker that a checkpoint holds.
  static std::vector<Tensor> kept(MethodRig& rig, int rank) {
    std::vector<Tensor> all = rig.unit(rank).state->tensors;
    all.push_back(rig.unit(rank).momentum);
    return all;
  }
  static std::vector<std::vector<std::byte>> copies(MethodRig& rig, int rank) {
    std::vector<std::vector<std::byte>> all;
    for (const Tensor& tensor : kept(rig, rank))
      all.emplace_back(tensor.raw(), tensor.raw() + tensor.bytes());
    return all;
  }
};

TEST_P(EveryMethod, LeavesTheSameResultOnAllRanksAndNoNeighbourTouched) {
  Rig rig(model_fields());
  for (int64_t step = 0; step < 5; ++step) {
    give(rig, step);
    std::vector<Floats> before;
    for (int rank = 0; rank < kWorkers; ++rank)
      before.push_back(values_of(rig.gradient(rank), rig.unit(rank).gradient.numel()));
    rig.step(step_info(step, kRatio));
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_EQ(result(rig, rank), result(rig, 0)) << "step " << step;
      std::vector<char> inside(before[0].size(), 0);
      for (const Field& field : rig.unit(rank).spec.fields)
        for (const Slice& slice : field.slices)
          std::fill_n(inside.begin() + slice.offset, slice.numel, char{1});
      for (size_t i = 0; i < inside.size(); ++i)
        ASSERT_TRUE(inside[i] || rig.gradient(rank)[i] == before[static_cast<size_t>(rank)][i]);
    }
    for (const float value : result(rig, 0)) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST_P(EveryMethod, GoesOnWithTheSameBitsFromWhatACheckpointHolds) {
  Rig whole(model_fields());
  Rig resumed(model_fields());
  for (int64_t step = 0; step < 7; ++step) {
    if (step == 4) {
      for (int rank = 0; rank < kWorkers; ++rank) {
        const auto saved = copies(whole, rank);
        const std::vector<Tensor> into = kept(resumed, rank);
        for (size_t i = 0; i < saved.size(); ++i)
          std::copy(saved[i].begin(), saved[i].end(), into[i].raw());
      }
    }
    give(whole, step);
    whole.step(step_info(step, kRatio));
    if (step < 4) continue;
    give(resumed, step);
    resumed.step(step_info(step, kRatio));
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_EQ(result(resumed, rank), result(whole, rank)) << "step " << step;
      EXPECT_EQ(copies(resumed, rank), copies(whole, rank)) << "step " << step;
    }
  }
}

TEST_P(EveryMethod, HasTheSameBitsInAnyOrderOfATeamsThreads) {
  Rig serial(model_fields());
  Rig shuffled(model_fields());
  for (int64_t step = 0; step < 3; ++step) {
    give(serial, step);
    serial.step(step_info(step, kRatio));
    give(shuffled, step);
    {
      const ShuffledTeams drawn(static_cast<uint32_t>(step + 1));
      shuffled.step(step_info(step, kRatio));
    }
    for (int rank = 0; rank < kWorkers; ++rank) {
      EXPECT_EQ(result(shuffled, rank), result(serial, rank)) << "step " << step;
      EXPECT_EQ(copies(shuffled, rank), copies(serial, rank)) << "step " << step;
    }
  }
}

TEST_P(EveryMethod, KeepsAWorkersStateIfItsGradientIsNotFinite) {
  Rig rig(model_fields());
  std::vector<StateSpec> specs = rig.compressor(1).state(rig.unit(1).spec, kWorkers);
  for (int64_t step = 0; step < 3; ++step) {
    give(rig, step);
    rig.step(step_info(step, kRatio));
  }
  const auto before = copies(rig, 1);
  give(rig, 3);
  std::fill_n(rig.gradient(1), rig.unit(1).gradient.numel(),
              std::numeric_limits<float>::quiet_NaN());
  rig.unit(1).finite = false;
  rig.step(step_info(3, kRatio));
  const auto after = copies(rig, 1);
  const bool own_momentum = rig.compressor(1).traits().result != UpdateRule::momentum;
  for (size_t i = 0; i < after.size(); ++i) {
    const bool own = i == specs.size()
                         ? own_momentum
                         : specs[i].sharing == Sharing::per_rank && !is_share_of_all(specs[i]);
    if (own) {
      EXPECT_EQ(after[i], before[i]) << (i < specs.size() ? specs[i].name : "momentum");
    }
  }
  for (int rank = 0; rank < kWorkers; ++rank) {
    EXPECT_EQ(result(rig, rank), result(rig, 0));
    for (const float value : result(rig, rank)) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST_P(EveryMethod, GoesOnAfterAStepThatIsFiniteNowhere) {
  Rig rig(model_fields());
  bool moved = false;
  for (int64_t step = 0; step < 4; ++step) {
    give(rig, step);
    for (int rank = 0; rank < kWorkers; ++rank) {
      rig.unit(rank).finite = step > 0;
      if (step == 0)
        std::fill_n(rig.gradient(rank), rig.unit(rank).gradient.numel(),
                    std::numeric_limits<float>::quiet_NaN());
    }
    rig.step(step_info(step, kRatio));
    const Floats left = result(rig, 0);
    for (const float value : left) ASSERT_TRUE(std::isfinite(value)) << "step " << step;
    moved = moved || (step > 0 && std::any_of(left.begin(), left.end(),
                                              [](float value) { return value != 0.0f; }));
  }
  EXPECT_TRUE(moved);
}

/// A residual would lose the clipped part of the mean. A momentum or a finished update
/// does not have the norm of a gradient.
TEST_P(EveryMethod, IsClippedLocallyIfItKeepsAnything) {
  const auto method = make();
  const Traits traits = method->traits();
  Rig rig(model_fields());
  bool keeps = traits.momentum == Home::compressor || traits.result != UpdateRule::gradient;
  for (const StateSpec& state : method->state(rig.unit(0).spec, kWorkers))
    keeps = keeps || state.per_element;
  if (keeps) {
    EXPECT_EQ(traits.clipping, Clipping::local_only);
  }
}

TEST_P(EveryMethod, WritesEveryByteThatItSends) {
  Rig first(model_fields()), second(model_fields());
  second.stain(std::byte{0xff});
  for (int64_t step = 0; step < 5; ++step) {
    for (Rig* rig : {&first, &second}) {
      give(*rig, step);
      rig->step(step_info(step, kRatio));
    }
    for (int round = 0; round < first.rounds(); ++round)
      for (int rank = 0; rank < kWorkers; ++rank)
        EXPECT_EQ(first.sent(rank, round), second.sent(rank, round))
            << "step " << step << " round " << round << " rank " << rank;
  }
}

/// `wisp plan` tells users of embeddings, from represents_zero, whether rows that no sample used
/// stay zero.
TEST_P(EveryMethod, LeavesUnusedRowsAloneUnlessItSaysOtherwise) {
  constexpr int64_t kRows = 64, kColumns = 48;
  std::vector<Field> fields = layer_fields({kRows * kColumns});
  fields[0].rows = kRows;
  Rig rig(fields);
  for (int rank = 0; rank < kWorkers; ++rank)
    for (int64_t row = 0; row < kRows; row += 2)
      std::fill_n(rig.momentum(rank) + row * kColumns, kColumns, 0.0f);
  bool moved = false;
  for (int64_t step = 0; step < 3; ++step) {
    give(rig, step);
    for (int rank = 0; rank < kWorkers; ++rank) {
      for (int64_t row = 0; row < kRows; row += 2)
        std::fill_n(rig.gradient(rank) + row * kColumns, kColumns, 0.0f);
    }
    rig.step(step_info(step, kRatio));
    for (int64_t row = 0; row < kRows; row += 2)
      moved = moved ||
              std::any_of(rig.gradient(0) + row * kColumns, rig.gradient(0) + (row + 1) * kColumns,
                          [](float value) { return value != 0.0f; });
  }
  EXPECT_EQ(moved, !rig.compressor(0).traits().represents_zero);
}

/// Gradients of one number, from zero and denormals to huge, give finite results, equal everywhere.
TEST_P(EveryMethod, SurvivesStrangeNumbers) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float huge = std::numeric_limits<float>::max() / 4.0f;
  for (const float value : {0.0f, -0.0f, tiny, 1e-30f, 1.0f, -3.5f, 65504.0f, 1e18f, huge}) {
    Rig rig(model_fields());
    const int64_t steps = value == huge ? 1 : 4;  // more steps may overflow a float
    for (int64_t step = 0; step < steps; ++step) {
      for (int rank = 0; rank < kWorkers; ++rank)
        std::fill_n(rig.gradient(rank), rig.unit(rank).gradient.numel(), value);
      rig.step(step_info(step, kRatio));
      for (int rank = 0; rank < kWorkers; ++rank) ASSERT_EQ(result(rig, rank), result(rig, 0));
      for (const float got : result(rig, 0)) ASSERT_TRUE(std::isfinite(got)) << value;
    }
  }
}

TEST_P(EveryMethod, WorksOnOneElement) {
  std::vector<Field> fields = layer_fields({1});
  Rig rig(fields);
  for (int64_t step = 0; step < 5; ++step) {
    give(rig, step);
    rig.step(step_info(step, kRatio));
    for (int rank = 0; rank < kWorkers; ++rank) EXPECT_EQ(result(rig, rank), result(rig, 0));
    EXPECT_TRUE(std::isfinite(rig.gradient(0)[0]));
  }
}

/// With a gradient as result and a residual, nothing is lost: Σ given = Σ applied + Σ kept.
TEST_P(EveryMethod, LosesNothingThatItKeepsAResidualOf) {
  Rig rig(model_fields());
  const Traits traits = rig.compressor(0).traits();
  const auto specs = rig.compressor(0).state(rig.unit(0).spec, kWorkers);
  bool keeps = false;
  for (const StateSpec& spec : specs) keeps = keeps || spec.name == "residual";
  if (!keeps || traits.result != UpdateRule::gradient)
    GTEST_SKIP() << "keeps no residual of gradients";
  const auto numel = static_cast<size_t>(arena_of(model_fields()));
  std::vector<double> left(numel, 0.0);
  for (int64_t step = 0; step < 20; ++step) {
    give(rig, step);
    rig.unit(1).finite = step % 4 != 3;
    for (int rank = 0; rank < kWorkers; ++rank) {
      if (!rig.unit(rank).finite) continue;  // contributes zero
      for (size_t i = 0; i < numel; ++i) left[i] += static_cast<double>(rig.gradient(rank)[i]);
    }
    rig.step(step_info(step, kRatio));
    for (size_t i = 0; i < numel; ++i) left[i] -= static_cast<double>(rig.gradient(0)[i]);
  }
  for (const Field& field : model_fields()) {
    for (const Slice& slice : field.slices) {
      for (int64_t i = slice.offset; i < slice.offset + slice.numel; ++i) {
        double kept = 0.0;
        for (int rank = 0; rank < kWorkers; ++rank) {
          kept += static_cast<double>(rig.state(rank, "residual").data<float>()[i]);
          if (specs.size() > 1 && specs[1].name == "owner_residual")
            kept += static_cast<double>(rig.state(rank, "owner_residual").data<float>()[i]);
        }
        // f32 rounding of 20 · (3 + 2) additions of numbers below 16
        EXPECT_NEAR(left[static_cast<size_t>(i)], kept, 2e-4) << i;
      }
    }
  }
}

/// Gradients of the same bits in arenas that begin 2^31 elements before the unit. Only addresses of
/// the unit are ever touched. A narrow index gives other bits, or ends the program.
TEST_P(EveryMethod, ReachesFarIntoTheArenas) {
  constexpr int64_t kFar = (int64_t{1} << 31) + 16;
  MemoryPool pool;  // outlives the tensors in it
  const std::vector<Field> here = model_fields();
  std::vector<Field> there = here;
  for (Field& field : there)
    for (Slice& slice : field.slices) slice.offset += kFar;
  Rig near(here), far(here);
  const auto numel = static_cast<size_t>(arena_of(here));
  const auto move_away = [&](Tensor& arena) {
    const Tensor moved({kFar + arena.numel()}, arena.dtype(), pool, 0);
    std::memcpy(moved.data<float>() + kFar, arena.raw(), numel * sizeof(float));
    arena = moved;
  };
  for (int rank = 0; rank < kWorkers; ++rank) {
    Unit& unit = far.unit(rank);
    const auto specs = far.compressor(rank).state(unit.spec, kWorkers);
    for (size_t i = 0; i < specs.size(); ++i)
      if (specs[i].per_element) move_away(unit.state->tensors[i]);
    for (Tensor* arena : {&unit.gradient, &unit.weight, &unit.momentum, &unit.square})
      move_away(*arena);
    unit.spec.fields = there;
  }
  for (int64_t step = 0; step < 3; ++step) {
    give(near, step);
    for (int rank = 0; rank < kWorkers; ++rank) {
      std::copy_n(near.gradient(rank), numel, far.gradient(rank) + kFar);
      std::copy_n(near.square(rank), numel, far.square(rank) + kFar);
    }
    near.step(step_info(step, kRatio));
    far.step(step_info(step, kRatio));
    for (int rank = 0; rank < kWorkers; ++rank)
      ASSERT_EQ(result(far, rank), result(near, rank)) << "step " << step;
  }
}

/// Guards and plans count the bytes that rank 0 sends. Only pairs send messages that differ by
/// rank.
TEST_P(EveryMethod, SendsMostFromRank0) {
  const std::unique_ptr<Compressor> compressor = make();
  Rig rig(model_fields());
  const UnitSpec spec = rig.unit(0).spec;
  for (const int workers : {1, 2, 3, 7, 8, 33}) {
    StepInfo info = step_info(0, kRatio);
    info.ranks = info.summands = workers;
    const auto sent = [&](int rank) {
      info.rank = rank;
      std::vector<Message> messages;
      for (int round = 0; round < compressor->rounds(spec, info); ++round)
        messages.push_back(compressor->message(spec, info, round));
      return bytes_on_wire(messages, workers);
    };
    for (int rank = 1; rank < workers; ++rank) EXPECT_LE(sent(rank), sent(0)) << workers;
  }
}

/// Memory of a step is its scratch and its outlets, which the synchronizer keeps.
TEST_P(EveryMethod, AllocatesNothingInAStepAfterTheFirst) {
  int64_t allocations = 0;
  Rig rig(model_fields(), [&] { return std::make_unique<Frugal>(make(), &allocations); });
  for (int64_t step = 0; step < 4; ++step) {  // two may allocate, as updates may alternate
    if (step == 2) allocations = 0;
    give(rig, step);
    rig.step(step_info(step, kRatio));
  }
  EXPECT_EQ(allocations, 0);
}

/// Options beside the defaults that run other kernels.
std::vector<std::string> variants(const std::string& method) {
  const std::string feedback = "compression.feedback = \"none\"\n";
  const std::string kept = "compression.feedback = \"ef\"\n";
  if (method == "qsgd") {
    std::vector<std::string> all{"compression.wire = \"elias\""};
    for (const int levels : {1, 3, 7, 15, 31, 63, 127})
      for (const char* rest : {"compression.group = 0", "compression.group = 128",
                               "compression.group = 64\ncompression.norm = \"l2\""})
        all.push_back(concat("compression.levels = ", levels, "\n", rest));
    all.push_back(kept + "compression.levels = 31\ncompression.group = 64");
    return all;
  }
  if (method == "natural") return {"compression.bits = 8", kept, kept + "compression.bits = 8"};
  if (method == "onebit" || method == "ef_signsgd") return {feedback};
  if (method == "terngrad") return {"compression.scaler = \"own\"", "compression.clip = 0.0"};
  if (method == "int8" || method == "int4") {
    std::vector<std::string> all;
    for (const char* scaler : {"own", "shared"}) {
      all.push_back(concat("compression.scaler = \"", scaler, "\""));
      all.push_back(concat(kept, "compression.rounding = \"nearest\"\n", all.back()));
    }
    return all;
  }
  return {};
}

TEST_P(EveryMethod, SendsTheSameInWhateverOrderThreadsCome) {
  std::vector<Field> fields = layer_fields({300, 1, 64 * 9, 12 * 50, 4500, 700});
  fields[2].rows = 64;
  fields[3].rows = 12;
  fields[4].rows = 3;
  fields[5].rows = 7;
  std::vector<std::string> options = variants(GetParam());
  options.push_back("");
  for (const std::string& option : options) {
    const auto all_of_it = [&] {
      Rig rig(fields, [&] {
        return make_method(GetParam(), option,
                           {.workers = kWorkers, .momentum = 0.9, .weight_decay = 1e-4});
      });
      std::vector<std::vector<std::byte>> all;
      for (int64_t step = 0; step < 3; ++step) {
        give(rig, step);
        rig.unit(1).finite = step != 1;
        rig.step(step_info(step, kRatio));
        for (int rank = 0; rank < kWorkers; ++rank) {
          for (int round = 0; round < rig.rounds(); ++round) all.push_back(rig.sent(rank, round));
          all.emplace_back(rig.unit(rank).gradient.raw(),
                           rig.unit(rank).gradient.raw() + rig.unit(rank).gradient.bytes());
          for (std::vector<std::byte>& state : copies(rig, rank)) all.push_back(std::move(state));
        }
      }
      return all;
    };
    const auto expected = all_of_it();
    for (uint32_t seed = 1; seed <= 2; ++seed) {
      const ShuffledTeams shuffled(seed);
      EXPECT_EQ(all_of_it() == expected, true) << option << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryMethod, testing::ValuesIn(registered()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace wisp
