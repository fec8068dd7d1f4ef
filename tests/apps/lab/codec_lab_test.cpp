#include "apps/lab/codec_lab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "apps/reference/method_matrix.h"
#include "compression/compressor.h"
#include "core/random.h"
#include "data/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

constexpr int kWorkers = 3;
constexpr int64_t kSteps = 8, kRows = 24, kCols = 32, kNumel = kRows * kCols;

float gradient(int rank, int64_t step, int64_t i) {
  const Philox random(5, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
  return static_cast<float>(normal(random, static_cast<uint64_t>(i)));
}

std::vector<float> rows_of(const std::string& path) {
  NpyReader reader(path);
  std::vector<float> all(static_cast<size_t>(reader.rows() * reader.row_shape().numel()));
  for (int64_t row = 0; row < reader.rows(); ++row)
    reader.read(row, all.data() + row * reader.row_shape().numel());
  return all;
}

/// Tests on files of kSteps gradients of shape `row_shape` for each worker.
class CodecLab : public testing::Test {
 protected:
  LabRequest request(const Shape& row_shape) {
    LabRequest request;
    for (int rank = 0; rank < kWorkers; ++rank) {
      request.inputs.push_back(dir_ / concat("worker", rank, ".npy"));
      NpyWriter writer(request.inputs.back(), row_shape);
      std::vector<float> row(static_cast<size_t>(kNumel));
      for (int64_t step = 0; step < kSteps; ++step) {
        for (int64_t i = 0; i < kNumel; ++i) row[static_cast<size_t>(i)] = gradient(rank, step, i);
        writer.append(row.data());
      }
    }
    request.out = dir_ / "out";
    return request;
  }
  static LabSummary run(const LabRequest& request, const std::string& method,
                        std::vector<std::string> overrides = {}) {
    overrides.push_back("compression.method=" + method);
    return run_lab(Config::from_text("", "test.toml", overrides), request);
  }
  std::vector<nlohmann::json> lines() const {
    std::istringstream text(read_text(dir_ / "out/steps.jsonl"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TempDir dir_;
};

/// Error feedback around the k largest values, as in the paper.
struct TopkModel {
  std::vector<std::vector<float>> residual{kWorkers, std::vector<float>(kNumel)};
  std::vector<int64_t> kept;  // elements kept by the last worker in the last step

  std::vector<float> step(int64_t number, int64_t k) {
    std::vector<float> mean(kNumel);
    for (int rank = 0; rank < kWorkers; ++rank) {
      std::vector<float>& e = residual[static_cast<size_t>(rank)];
      for (int64_t i = 0; i < kNumel; ++i)
        e[static_cast<size_t>(i)] += gradient(rank, number, i) / kWorkers;
      kept.resize(kNumel);
      std::iota(kept.begin(), kept.end(), 0);
      std::stable_sort(kept.begin(), kept.end(), [&](int64_t a, int64_t b) {
        return std::abs(e[static_cast<size_t>(a)]) > std::abs(e[static_cast<size_t>(b)]);
      });
      kept.resize(static_cast<size_t>(k));
      for (const int64_t i : kept)
        mean[static_cast<size_t>(i)] += std::exchange(e[static_cast<size_t>(i)], 0.0f);
    }
    return mean;
  }
};

TEST_F(CodecLab, DrivesAMethodAsItsPaperSays) {
  const LabRequest request = this->request({kRows, kCols});
  const LabSummary summary = run(request, "topk", {"compression.ratio=0.0625"});
  constexpr int64_t k = kNumel / 16;
  TopkModel model;
  const std::vector<float> means = rows_of(dir_ / "out/mean.npy");
  std::vector<float> last;
  for (int64_t step = 0; step < kSteps; ++step) {
    last = model.step(step, k);
    EXPECT_EQ(last, std::vector<float>(means.begin() + step * kNumel,
                                       means.begin() + (step + 1) * kNumel))
        << "step " << step;
  }
  double error = 0.0, truth = 0.0, dot = 0.0, length = 0.0, residual = 0.0;
  for (int64_t i = 0; i < kNumel; ++i) {
    double mean = 0.0;
    for (int rank = 0; rank < kWorkers; ++rank)
      mean += static_cast<double>(gradient(rank, kSteps - 1, i)) / kWorkers;
    const double got = last[static_cast<size_t>(i)];
    error += (got - mean) * (got - mean);
    truth += mean * mean;
    dot += got * mean;
    length += got * got;
    residual += std::pow(model.residual[1][static_cast<size_t>(i)], 2);
  }
  ASSERT_EQ(lines().size(), static_cast<size_t>(kSteps));
  const nlohmann::json line = lines().back();
  EXPECT_EQ(line["step"], kSteps - 1);
  EXPECT_TRUE(line["compressed"]);
  EXPECT_EQ(line["bytes_raw"], 4 * kNumel);
  for (const int64_t bytes : line["bytes_encoded"]) EXPECT_GE(bytes, 4 * k);
  EXPECT_NEAR(line["relative_error"], std::sqrt(error / truth), 1e-9);  // the sums are double
  EXPECT_NEAR(line["cosine"], dot / std::sqrt(truth * length), 1e-9);
  EXPECT_NEAR(line["norms"]["residual"][1], std::sqrt(residual), 1e-9);
  for (int rank = 0; rank < kWorkers; ++rank) {
    std::vector<float> state(kNumel);
    const std::string file = read_text(dir_ / concat("out/residual_", rank, ".npy"));
    std::memcpy(state.data(), file.data() + file.size() - 4 * kNumel, 4 * kNumel);
    EXPECT_EQ(state, model.residual[static_cast<size_t>(rank)]) << "rank " << rank;
  }
  EXPECT_EQ(summary.steps, kSteps);
  EXPECT_EQ(summary.compressed, kSteps);
  EXPECT_GT(summary.reduction_sent, 5.0);
}

TEST_F(CodecLab, KeepsThePayloadsOfTheLastStep) {
  run(request({kRows, kCols}), "topk", {"compression.ratio=0.0625", "compression.indices=runs16"});
  constexpr int64_t k = kNumel / 16;
  TopkModel model;
  for (int64_t step = 0; step < kSteps; ++step) model.step(step, k);
  std::sort(model.kept.begin(), model.kept.end());
  const std::string file = read_text(dir_ / concat("out/payload_", kWorkers - 1, ".bin"));
  ASSERT_EQ(file.size(), 16 + 6 * k);
  uint32_t head[2];
  uint64_t bytes = 0;
  std::memcpy(head, file.data(), 8);
  std::memcpy(&bytes, file.data() + 8, 8);
  EXPECT_EQ(head[0], 0u) << "round";
  EXPECT_EQ(head[1], 0u) << "outlet";
  EXPECT_EQ(bytes, static_cast<uint64_t>(6 * k));
  int64_t position = -1;
  for (int64_t entry = 0; entry < k; ++entry) {
    uint16_t run = 0;
    std::memcpy(&run, file.data() + 16 + 4 * k + 2 * entry, 2);
    position += run + 1;
    EXPECT_EQ(position, model.kept[static_cast<size_t>(entry)]);
  }
}

TEST_F(CodecLab, WithoutAMethodTheResultIsTheMean) {
  const LabSummary summary = run(request({kRows, kCols}), "none");
  const std::vector<float> means = rows_of(dir_ / "out/mean.npy");
  for (int64_t i = 0; i < kNumel; ++i) {
    float sum = 0.0f;
    for (int rank = 0; rank < kWorkers; ++rank) sum += gradient(rank, 0, i) / kWorkers;
    EXPECT_EQ(means[static_cast<size_t>(i)], sum);
  }
  EXPECT_EQ(summary.compressed, 0);
  EXPECT_LT(summary.relative_error, 1e-6);  // three roundings of f32
  EXPECT_EQ(read_text(dir_ / "out/payload_0.bin"), "");
}

TEST_F(CodecLab, RunsEveryRegisteredMethodAndWritesItsState) {
  const LabRequest request = this->request({kRows, kCols});
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    std::filesystem::remove_all(request.out);
    const bool sgd = judge({.method = name}).refusal.empty();
    const std::string optimizer = sgd ? "sgd" : "adamw";
    if (!judge({name, optimizer}).refusal.empty()) continue;  // a test's method that no run accepts
    const LabSummary summary =
        run(request, name, {"compression.guard=false", "optimizer.kind=" + optimizer});
    EXPECT_EQ(summary.steps, kSteps) << name;
    Config config;
    const std::unique_ptr<Compressor> compressor =
        entry.make(config, {.workers = kWorkers, .momentum = 0.9});
    if (!compressor) continue;
    const Field field{.slices = {{0, kNumel}}, .numel = kNumel, .rows = kRows};
    for (const StateSpec& state : compressor->state({{&field, 1}, kNumel}, kWorkers)) {
      const char* rank = state.sharing == Sharing::shared ? "" : "_2";
      EXPECT_TRUE(std::filesystem::exists(concat(request.out, "/", state.name, rank, ".npy")))
          << name;
    }
    EXPECT_EQ(!read_text(request.out + "/payload_1.bin").empty(), summary.compressed > 0) << name;
  }
}

/// As in a run, a vector goes dense if the method leaves vectors dense and no rule takes it.
TEST_F(CodecLab, TheLayerIsCompressedIfARunWouldCompressIt) {
  LabRequest request = this->request({kNumel});
  const Overrides topk = {"compression.ratio=0.01"};
  const LabSummary vector = run(request, "topk", topk);
  EXPECT_EQ(vector.compressed, 0);
  ASSERT_EQ(vector.remarks.size(), 1u);
  EXPECT_EQ(vector.remarks[0],
            "worker0 stays dense, as in a run, because its shape (768) is a vector's; "
            "'compression.policy=[{method=\"topk\"}]' compresses it, and --shape gives a flattened "
            "layer's shape");
  EXPECT_EQ(run(request, "ef_signsgd").compressed, kSteps) << "which compresses vectors";

  const LabSummary ruled =
      run(request, "topk", topk + Overrides{"compression.policy=[{method=\"topk\"}]"});
  EXPECT_EQ(ruled.compressed, kSteps);
  EXPECT_TRUE(ruled.remarks.empty()) << ruled.remarks[0];
  const std::vector<float> means = rows_of(dir_ / "out/mean.npy");
  request.shape = Shape{kRows, kCols};
  EXPECT_EQ(run(request, "topk", topk).compressed, kSteps);
  EXPECT_EQ(rows_of(dir_ / "out/mean.npy"), means);
  EXPECT_EQ(NpyReader(dir_ / "out/mean.npy").row_shape(), *request.shape);
}

TEST_F(CodecLab, TakesARunsRules) {
  LabRequest request = this->request({kRows, kCols});
  const Overrides rules = {"compression.ratio=0.01",
                           "compression.policy=[{name=\"*.bias\", method=\"none\"}, "
                           "{name=\"layer?.*\", method=\"fp16\"}]"};
  const auto payload_bytes = [&](const std::string& layer) {
    request.layer = layer;
    EXPECT_TRUE(run(request, "topk", rules).remarks.empty()) << layer;
    return read_text(dir_ / "out/payload_0.bin").size();
  };
  EXPECT_EQ(payload_bytes("layer1.bias"), 0u);
  EXPECT_EQ(payload_bytes("layer1.weight"), static_cast<size_t>(16 + 2 * kNumel)) << "fp16";
  EXPECT_LT(payload_bytes("classifier"), 100u) << "one of a hundred, by topk";
}

/// Means cover the steps whose true mean is finite and not zero.
TEST_F(CodecLab, LeavesOutStepsWithoutATrueMean) {
  LabRequest request;
  request.out = dir_ / "out";
  for (const int rank : {0, 1}) {
    request.inputs.push_back(dir_ / concat("steps_", rank, ".npy"));
    NpyWriter file(request.inputs.back(), {4});
    for (const float value : {0.0f, 1.0f, std::nanf(""), 2.0f}) {
      const float row[] = {value, rank == 0 ? 1.0f * (value != 0.0f) : value, 0.0f, 0.0f};
      file.append(row);
    }
  }
  const LabSummary summary = run(request, "topk", {"compression.ratio=0.5"});
  EXPECT_EQ(summary.cosines, 2);
  EXPECT_EQ(summary.nonfinite, 1);
  EXPECT_GT(summary.cosine, 0.9);
  EXPECT_LT(summary.relative_error, 0.5);
  EXPECT_EQ(lines()[2]["nonfinite"], (std::vector<int>{0, 1}));
  EXPECT_TRUE(lines()[0]["cosine"].is_null());
}

TEST_F(CodecLab, SaysWhatAPlanSays) {
  const LabRequest request = this->request({kRows, kCols});
  const LabSummary summary = run(request, "block_topk", {"compression.ratio=0.9"});
  EXPECT_EQ(summary.compressed, 0);
  ASSERT_FALSE(summary.remarks.empty());
  EXPECT_NE(summary.remarks[0].find("block_topk would send"), std::string::npos)
      << summary.remarks[0];
}

TEST_F(CodecLab, WarmUpRunsOverItsEpochs) {
  LabRequest request = this->request({kRows, kCols});
  request.steps_per_epoch = 2;
  const LabSummary summary = run(request, "dgc",
                                 {"compression.ratio=0.01", "compression.warmup=list",
                                  "compression.warmup_list=[1.0]", "compression.warmup_epochs=2"});
  EXPECT_EQ(summary.compressed, kSteps - 4) << "two epochs of two steps are dense";
  EXPECT_FALSE(lines()[3]["compressed"]);
  EXPECT_TRUE(lines()[4]["compressed"]);
}

TEST_F(CodecLab, RefusesWhatDoesNotFit) {
  LabRequest request = this->request({kRows, kCols});
  const auto error = [&](std::vector<std::string> overrides = {}) {
    return error_of([&] { run(request, "topk", std::move(overrides)); });
  };
  EXPECT_NE(error({"workers=3"}).find("workers has no place here"), std::string::npos);
  EXPECT_NE(error({"optimizer.rate=1"}).find("unknown key 'optimizer.rate'"), std::string::npos);
  EXPECT_NE(error({"compression.policy=[{kind=\"conv\", method=\"none\"}]"})
                .find("a rule for layers of kind \"conv\""),
            std::string::npos);
  request.shape = Shape{7};
  EXPECT_NE(error().find("the layer's shape is (7)"), std::string::npos);
  request.shape.reset();
  { const NpyWriter no_rows(dir_ / "other.npy", {3}); }
  request.inputs.push_back(dir_ / "other.npy");
  EXPECT_NE(error().find("other.npy: has 0 rows of (3), but"), std::string::npos);
}

}  // namespace
}  // namespace wisp
