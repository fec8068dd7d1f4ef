// Tests of saved state that another number of workers reads.
#include "apps/run/saved_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "apps/run/checkpoints.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

/// Tests on files of three ranks that hold one tensor.
class Resize : public testing::Test {
 protected:
  template <class T>
  Tensor tensor(DType dtype, std::vector<T> values) {
    Tensor made({static_cast<int64_t>(values.size())}, dtype, pool_, 0);
    std::copy(values.begin(), values.end(), made.data<T>());
    return made;
  }
  template <class T>
  void save(DType dtype, const std::vector<std::vector<T>>& by_rank) {
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      CheckpointWriter writer;
      writer.add("x", tensor(dtype, by_rank[rank]));
      const std::string path = dir_ / std::to_string(rank);
      writer.write(path);
      files_.push_back(std::make_unique<CheckpointReader>(path));
    }
  }
  template <class T>
  std::vector<T> read(DType dtype, size_t count, OnResize rule, int rank, int workers) {
    const SavedState state{"x", tensor(dtype, std::vector<T>(count, T{9})), Sharing::per_rank,
                           rule};
    read_resized(state, files_, rank, workers);
    return {state.tensor.data<T>(), state.tensor.data<T>() + count};
  }

  /// Saves x, whose element i is i. Each rank's file has the given ranges.
  void save_parts(const std::vector<std::vector<std::pair<int64_t, int64_t>>>& by_rank) {
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      CheckpointWriter writer;
      for (const auto& [begin, end] : by_rank[rank]) {
        std::vector<float> values(static_cast<size_t>(end - begin));
        std::iota(values.begin(), values.end(), static_cast<float>(begin));
        writer.add(part_name({"x", begin, end}), tensor(DType::f32, values));
      }
      const std::string path = dir_ / std::to_string(rank);
      writer.write(path);
      files_.push_back(std::make_unique<CheckpointReader>(path));
    }
  }
  std::vector<float> read_part(int64_t begin, int64_t end) {
    const SavedState state{part_name({"x", begin, end}),
                           tensor(DType::f32, std::vector<float>(static_cast<size_t>(end - begin))),
                           Sharing::per_rank, OnResize::owner};
    read_resized(state, files_, 0, 1);
    return {state.tensor.data<float>(), state.tensor.data<float>() + (end - begin)};
  }

  TempDir dir_;
  MemoryPool pool_;
  std::vector<std::unique_ptr<CheckpointReader>> files_;
};

TEST_F(Resize, SumsAndSharesOut) {
  save<float>(DType::f32, {{1.0f, 8.0f}, {2.0f, 0.0f}, {3.0f, -2.0f}});
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(read<float>(DType::f32, 2, OnResize::redistribute_sum, rank, 2),
              (std::vector<float>{3.0f, 3.0f}));
  }
}

TEST_F(Resize, TakesEachElementFromItsOwner) {
  save_parts({{{0, 2}}, {{2, 3}, {3, 7}}, {{0, 0}}, {{7, 9}}});
  EXPECT_EQ(read_part(0, 9), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(read_part(1, 4), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read_part(4, 4), std::vector<float>());
}

TEST_F(Resize, NamesElementsThatNobodyOwned) {
  save_parts({{{0, 2}}, {{3, 5}}});
  EXPECT_EQ(error_of([&] { read_part(1, 5); }),
            "resume: the files of the checkpoint's ranks hold 3 elements of x[1:5], expected 4");
}

TEST_F(Resize, NamesElementsThatSeveralOwned) {
  save_parts({{{0, 4}}, {{3, 4}}});  // 4 and not 3, as many as there should be
  EXPECT_EQ(error_of([&] { read_part(0, 5); }),
            "resume: the files of the checkpoint's ranks hold element 3 of x[0:5] twice, expected "
            "each element once");
}

/// Files that say of a part that it is larger than the file, and of one that it is another.
TEST_F(Resize, RefusesPartsThatAreNotAsTheyAreNamed) {
  const auto refusal = [&](const std::string& name, const Shape& shape) {
    files_.clear();
    CheckpointWriter writer;
    writer.add(name, Tensor(shape, DType::f32));
    writer.write(dir_ / "0");
    files_.push_back(std::make_unique<CheckpointReader>(dir_ / "0"));
    return error_of([&] { read_part(0, 4); });
  };
  EXPECT_EQ(refusal("x[0:4]", {4}), "no error");
  EXPECT_EQ(refusal("x[0:4000000000000000000]", {4}),
            dir_ / "0: x[0:4000000000000000000] has the shape (4)");
  EXPECT_EQ(refusal("x[0:4]", {3}), dir_ / "0: x[0:4] has the shape (3)");
  EXPECT_EQ(refusal("x[0:4]", {2, 2}), dir_ / "0: x[0:4] has the shape (2, 2)");
  EXPECT_EQ(refusal("x[2:9223372036854775807]", {4}),
            dir_ / "0: x[2:9223372036854775807] has the shape (4)");
}

TEST_F(Resize, NamesASumThatIsTooLarge) {
  save<int64_t>(DType::i64, {{INT64_MAX - 1}, {2}});
  EXPECT_EQ(error_of([&] { read<int64_t>(DType::i64, 1, OnResize::redistribute_sum, 0, 3); }),
            "resume: the sum of x over the checkpoint's ranks is too large");
}

TEST_F(Resize, ChecksTheValuesOfEachFile) {
  save<float>(DType::f32, {{1.0f}, {std::nanf("")}, {3.0f}});
  for (const OnResize rule : {OnResize::redistribute_sum, OnResize::repeat}) {
    const SavedState state{.name = "x",
                           .tensor = tensor(DType::f32, std::vector<float>{0.0f}),
                           .on_resize = rule,
                           .check = check_bounded};
    EXPECT_EQ(error_of([&] { read_resized(state, files_, 1, 2); }),
              dir_ / "1: x: element 0 is nan, expected a number of at most 2^110 in magnitude");
  }
}

TEST_F(Resize, KeepsEveryCount) {
  save<int64_t>(DType::i64, {{10}, {10}, {10}});
  int64_t sum = 0;
  for (int rank = 0; rank < 4; ++rank)
    sum += read<int64_t>(DType::i64, 1, OnResize::redistribute_sum, rank, 4)[0];
  EXPECT_EQ(sum, 30);
}

TEST_F(Resize, RepeatsInTurnOrStartsAtZero) {
  save<float>(DType::f32, {{1.0f}, {2.0f}, {3.0f}});
  EXPECT_EQ(read<float>(DType::f32, 1, OnResize::repeat, 1, 5)[0], 2.0f);
  EXPECT_EQ(read<float>(DType::f32, 1, OnResize::repeat, 4, 5)[0], 2.0f);
  EXPECT_EQ(read<float>(DType::f32, 1, OnResize::zero, 0, 5)[0], 0.0f);
}

TEST_F(Resize, NamesWhatCannotBeSummed) {
  save<uint8_t>(DType::u8, {{1}, {2}});
  EXPECT_EQ(error_of([&] { read<uint8_t>(DType::u8, 1, OnResize::redistribute_sum, 0, 3); }),
            "resume: x is u8, which cannot be added up for another number of workers");
}

/// The sum, over all ranks, of the first layer's values in a checkpoint's arena.
double sum_of(const std::string& run, int64_t step, int workers, const std::string& arena) {
  MemoryPool pool;
  double sum = 0.0;
  for (int rank = 0; rank < workers; ++rank) {
    const CheckpointReader file(
        concat(checkpoint_path(run + "/checkpoints", step), "/rank_", rank, ".safetensors"));
    Tensor tensor({24, 3072}, DType::f32, pool, 0);
    file.read(arena + "/layer0.weight", tensor);
    for (int64_t i = 0; i < tensor.numel(); ++i) sum += tensor.data<float>()[i];
  }
  return sum;
}

std::string resume_aloud(const std::string& run, const Overrides& overrides) {
  testing::internal::CaptureStderr();
  train(tiny_config(overrides), {run, Open::resume});
  return testing::internal::GetCapturedStderr();
}

TEST(ResumeWithAnotherN, SaysWhatBecomesOfTheState) {
  const TempDir dir;
  tiny_train(dir / "run", Overrides{"workers=4", "train.max_steps=6"} + method_overrides("dgc"));
  const std::string said = resume_aloud(
      dir / "run", Overrides{"workers=2", "train.max_steps=7"} + method_overrides("dgc"));
  EXPECT_NE(said.find("was saved by 4 workers"), std::string::npos) << said;
  EXPECT_NE(
      said.find("is resumed by 2: momentum, residual, tally, traffic: the sum over the workers "
                "is divided among them"),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("which layers are compressed is decided again"), std::string::npos) << said;
}

TEST(ResumeWithAnotherN, LosesNoResidualAndNoMomentum) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"dgc", "residual"}, {"dgc", "momentum"}, {"powersgd", "residual"}, {"acpsgd", "residual"}};
  for (const auto& each : cases) {
    const std::string &method = each.first, &arena = each.second;
    const TempDir dir;
    const Overrides still =
        Overrides{"optimizer.lr=0", "train.max_steps=6"} + method_overrides(method);
    tiny_train(dir / "run", Overrides{"workers=4"} + still);
    const double before = sum_of(dir / "run", 6, 4, arena);
    ASSERT_NE(before, 0.0);
    with_replicas(tiny_config(Overrides{"workers=2"} + still), [&](ReplicaTest& test) {
      Checkpoints(dir / "run/checkpoints", {}).load(test.replica);
      double sum = 0.0;
      for (const SavedState& saved : test.replica.state()) {
        if (saved.name != concat(arena, "/layer0.weight")) continue;
        for (int64_t i = 0; i < saved.tensor.numel(); ++i) sum += saved.tensor.data<float>()[i];
      }
      test.replica.sum_over_workers({&sum, 1});
      EXPECT_NEAR(sum, before, 1e-6 * std::abs(before) + 1e-6);
    });
  }
}

TEST(ResumeWithAnotherN, GoesOnLikeTheSameBatchOfAnyN) {
  const Overrides exact = {"train.precision=f64", "train.backend=reference"};
  const TempDir dir;
  tiny_train(dir / "one", exact);
  tiny_train(dir / "run", exact + Overrides{"workers=4", "train.max_steps=6"});
  tiny_train(dir / "run", exact + Overrides{"workers=2", "train.max_steps=11"}, Open::resume);
  tiny_train(dir / "run", exact + Overrides{"workers=8"}, Open::resume);
  MemoryPool pool;
  Tensor one({24, 3072}, DType::f64, pool, 0), changed({24, 3072}, DType::f64, pool, 0);
  for (const char* name : {"weight/layer0.weight", "momentum/layer0.weight"}) {
    CheckpointReader(dir / "one/checkpoints/step_16/shared.safetensors").read(name, one);
    CheckpointReader(dir / "run/checkpoints/step_16/shared.safetensors").read(name, changed);
    for (int64_t i = 0; i < one.numel(); ++i)
      ASSERT_NEAR(one.data<double>()[i], changed.data<double>()[i], 1e-12) << name << " " << i;
  }
}

}  // namespace
}  // namespace wisp
