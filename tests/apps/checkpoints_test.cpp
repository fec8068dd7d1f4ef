#include "apps/checkpoints.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace wisp {
namespace {

using Open = RunDirectory::Open;

/// All files of a checkpoint, by name.
std::map<std::string, std::string> content(const std::string& checkpoint) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint))
    files[entry.path().filename().string()] = read_text(entry.path().string());
  return files;
}

struct ResumeCase {
  const char* name;
  Overrides overrides;
};

class Resume : public testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, GoesOnAsIfNothingHadHappened) {
  for (const char* workers : {"workers=1", "workers=3"}) {
    const Overrides run = Overrides{workers, "train.batch=24"} + GetParam().overrides;
    const TempDir dir;
    tiny_train(dir / "whole", run);          // 4 epochs of 5 steps
    for (const char* stop : {"10", "13"}) {  // at the end of an epoch, and in the middle of one
      SCOPED_TRACE(std::string(workers) + ", stopped after step " + stop);
      tiny_train(dir / "cut", run + Overrides{std::string("train.max_steps=") + stop},
                 Open::overwrite);
      EXPECT_EQ(tiny_train(dir / "cut", run, Open::resume).steps, 20);
      // all weights, momenta, residuals and counters
      EXPECT_TRUE(content(dir / "cut/checkpoint") == content(dir / "whole/checkpoint"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoint, Resume,
    testing::Values(ResumeCase{"dense", {}},
                    ResumeCase{"topk", {"compression.method=topk", "compression.ratio=0.02"}},
                    ResumeCase{"dgc",
                               {"compression.method=dgc", "compression.ratio=0.01",
                                "compression.warmup=list", "compression.warmup_epochs=2.0",
                                "compression.warmup_list=[1.0, 0.25, 0.05]"}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(Checkpoint, ResumedFinishedRunKeepsItsSummary) {
  const TempDir dir;
  tiny_train(dir / "run");
  const std::string summary = read_text(dir / "run/summary.json");
  const auto files = content(dir / "run/checkpoint");
  EXPECT_EQ(tiny_train(dir / "run", {}, Open::resume).steps, 16);
  EXPECT_EQ(read_text(dir / "run/summary.json"), summary);
  EXPECT_TRUE(content(dir / "run/checkpoint") == files);
}

TEST(Checkpoint, RunKilledBeforeItsSummaryGetsOne) {
  const TempDir dir;
  const double accuracy = tiny_train(dir / "run").test_accuracy;
  std::filesystem::remove(dir / "run/summary.json");
  EXPECT_EQ(tiny_train(dir / "run", {}, Open::resume).test_accuracy, accuracy);
  EXPECT_EQ(Summary::from_json(dir / "run/summary.json").steps, 16);
}

TEST(Checkpoint, NamesTheNumberOfWorkersItWants) {
  const TempDir dir;
  tiny_train(dir / "run", {"workers=2", "train.max_steps=4"});
  const std::string config = read_text(dir / "run/config.toml");
  const std::string error = error_of([&] { tiny_train(dir / "run", {"workers=4"}, Open::resume); });
  EXPECT_NE(error.find("was saved by 2 workers, this run has 4; resume with workers = 2"),
            std::string::npos)
      << error;
  EXPECT_EQ(read_text(dir / "run/config.toml"), config) << "the run stays as it was";
}

TEST(Checkpoint, NamesTheMethodItBelongsTo) {
  const TempDir dir;
  // a momentum of DGC's is each rank's own: an optimizer that took it would part the replicas
  tiny_train(dir / "run", Overrides{"workers=2", "train.max_steps=4"} + method_overrides("dgc"));
  for (const char* other : {"none", "topk"}) {
    const std::string error = error_of([&] {
      tiny_train(dir / "run", Overrides{"workers=2"} + method_overrides(other), Open::resume);
    });
    EXPECT_NE(error.find(std::string("compression.method dgc, this run has ") + other),
              std::string::npos)
        << error;
  }
}

TEST(Checkpoint, NamesTheTensorOfAnotherModel) {
  const TempDir dir;
  tiny_train(dir / "run", {"train.max_steps=1"});
  const std::string error =
      error_of([&] { tiny_train(dir / "run", {"model.hidden=[25]"}, Open::resume); });
  EXPECT_NE(error.find("weight/layer"), std::string::npos) << error;
}

TEST(Checkpoint, NamesTheDamagedFile) {
  const TempDir dir;
  const Overrides two = {"workers=2", "train.max_steps=2"};
  for (const char* name : {"shared.safetensors", "rank_1.safetensors"}) {
    tiny_train(dir / "run", two, Open::overwrite);
    const std::string path = dir / "run/checkpoint/" + name;
    const std::string good = read_text(path);
    std::string bad = good;
    bad[bad.size() - 100] = static_cast<char>(bad[bad.size() - 100] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    const auto resume = [&] { tiny_train(dir / "run", {"workers=2"}, Open::resume); };
    std::string error = error_of(resume);
    EXPECT_NE(error.find(name), std::string::npos) << error;
    std::ofstream(path, std::ios::binary) << good.substr(0, good.size() / 2);
    error = error_of(resume);
    EXPECT_NE(error.find(name), std::string::npos) << error;
  }
}

/// Files of this process may not grow beyond `bytes`: to a writer, like a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Checkpoint, WithoutRoomTheOldOneStays) {
  const TempDir dir;
  tiny_train(dir / "whole", {"workers=2"});
  tiny_train(dir / "run", {"workers=2", "train.max_steps=4"});
  {
    const FileSizeLimit limit(100'000);  // the weights alone have 300,000 bytes
    const std::string error =
        error_of([&] { tiny_train(dir / "run", {"workers=2"}, Open::resume); });
    EXPECT_NE(error.find(dir / "run/checkpoint.tmp/shared.safetensors"), std::string::npos)
        << error;
    EXPECT_NE(error.find("rank 0"), std::string::npos) << error;
  }
  tiny_train(dir / "run", {"workers=2"}, Open::resume);
  EXPECT_TRUE(content(dir / "run/checkpoint") == content(dir / "whole/checkpoint"));
}

}  // namespace
}  // namespace wisp
