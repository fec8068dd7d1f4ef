// Tests of the program where OpenMP gives smaller teams than it was told: a step of every model,
// and its evaluation, have the bits of that number of threads, or the command ends with an error.
#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "tests/support/command.h"
#include "tests/support/tiny_text_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

constexpr int kRefused = 1;  // exit status

/// What limits or varies teams. Each is of one number of threads at most; 0: of any.
struct Limit {
  const char* variables;
  int most = 0;
};
const Limit kLimits[] = {{"OMP_THREAD_LIMIT=1", 1},
                         {"OMP_THREAD_LIMIT=2", 2},
                         {"OMP_DYNAMIC=true"},
                         {"OMP_MAX_ACTIVE_LEVELS=0"},
                         {"OMP_NUM_THREADS=1"},
                         {"OMP_NESTED=true"},
                         {"OMP_PROC_BIND=true OMP_PLACES=cores OMP_STACKSIZE=256K"}};

/// Those that leave any number of threads at once, to save time.
const Limit kTogether[] = {
    {"OMP_THREAD_LIMIT=1", 1},
    {"OMP_THREAD_LIMIT=2", 2},
    {"OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=1 OMP_NESTED=false"}};

std::string images(int side, int count) {
  return concat("data = { name = \"synthetic\", augment = false, threads = 0, side = ", side,
                ", train_count = ", count, ", test_count = ", count, " }\ntrain.batch = ", count,
                "\n");
}

struct Subject {
  std::string model;  // registered name
  std::string config;
  bool large = false;  // a step takes a second
};

/// One step of each model, with products and convolutions that are worth several threads. `dir`
/// gets their files.
std::vector<Subject> subjects(const TempDir& dir) {
  std::string words;
  for (int i = 0; i < 3000; ++i) words += concat("w", i * i % 197, i % 12 == 11 ? "\n" : " ");
  const std::string text = concat("data = { name = \"text\", window = 20, path = \"",
                                  dir.write("words.txt", words), "\" }\ntrain.batch = 16\n");
  std::vector<Subject> all = {
      {"mlp", "model.hidden = [256, 256]\n" + images(16, 64)},
      {"resnet_cifar", "model.depth = 8\n" + images(32, 16)},
      {"resnet", "model.depth = 18\n" + images(32, 2), true},
      {"vgg", "model.depth = 11\nmodel.hidden_units = 0\n" + images(32, 2), true},
      {"alexnet", images(63, 2), true},
      {"lstm_lm", "model.units = 256\nmodel.layers = 1\n" + text},
      {"lstm_lm", "model.units = 256\nmodel.layers = 1\nmodel.cell = \"gru\"\n" + text},
      {"lstm_lm", "model.units = 128\nmodel.layers = 1\nmodel.cell = \"tanh\"\n" + text}};
#if WISP_HAS_SNDFILE
  const std::string list = write_tones(dir);
  const std::string speech =
      concat("data = { name = \"speech\", alphabet = \"HILOW \", train = \"", list, "\", test = \"",
             list, "\" }\nmodel.layers = 1\nmodel.units = 128\ntrain.batch = 4\n");
  all.push_back({"deepspeech", speech});
  all.push_back({"deepspeech", speech + "model.cell = \"lstm\"\n"});
#endif
  for (Subject& subject : all)
    subject.config = concat(
        "workers = 1\noptimizer = { lr = 0.01, momentum = 0.0 }\n"
        "train.epochs = 1\ntrain.max_steps = 1\nmodel.name = \"",
        subject.model, "\"\n", subject.config);
  return all;
}

/// Runs the program. One that hangs in a barrier is deaf to other signals.
CommandResult limited(const std::string& variables, const std::string& arguments) {
  return run_command(
      concat("env ", variables, " timeout -s KILL 300 ", WISP_PROGRAM, " ", arguments));
}

void expect_refusal(const CommandResult& result, int asked, int granted) {
  EXPECT_EQ(result.status, kRefused);
  const std::string words = concat("threads is ", asked, ", but OpenMP grants ", granted,
                                   " (OMP_THREAD_LIMIT is ", granted, ")");
  EXPECT_NE(result.output.find(words), std::string::npos) << result.output;
}

/// The losses of the steps of `wisp bench step`, from the first weights and from those that the
/// steps left.
std::string losses(const CommandResult& result) {
  EXPECT_EQ(result.status, 0) << result.output;
  const size_t at = result.output.find("\"loss0\"");
  EXPECT_NE(at, std::string::npos) << result.output;
  return at == std::string::npos ? "" : result.output.substr(at);
}

class OmpLimits : public testing::TestWithParam<int> {};

TEST_P(OmpLimits, ChangeNoBitOfATrainingStep) {
  const int threads = GetParam();
  const TempDir dir;
  for (const Subject& subject : subjects(dir)) {
    const std::string command = concat("bench step ", dir.write("run.toml", subject.config),
                                       " --json --seconds 0 --steps 1 threads=", threads);
    const std::string expected = losses(limited("-u OMP_THREAD_LIMIT", command));
    const std::span<const Limit> limits =
        threads == 2 && !subject.large ? std::span<const Limit>(kLimits) : kTogether;
    for (const Limit& limit : limits) {
      SCOPED_TRACE(concat(subject.config, limit.variables));
      const CommandResult result = limited(limit.variables, command);
      if (limit.most > 0 && limit.most < threads) {
        expect_refusal(result, threads, limit.most);
      } else {
        EXPECT_EQ(losses(result), expected);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Threads, OmpLimits, testing::Values(1, 2, 4, 8));

/// The last line, which has the figures.
std::string figures(const CommandResult& result) {
  EXPECT_EQ(result.status, 0) << result.output;
  const size_t end = result.output.find_last_not_of('\n');
  return result.output.substr(result.output.rfind('\n', end) + 1);
}

TEST(OmpLimits, ChangeNoFigureOfAnEvaluation) {
  const TempDir dir;
  for (const Subject& subject : subjects(dir)) {
    SCOPED_TRACE(subject.config);
    const std::string config = dir.write("run.toml", subject.config);
    const std::string run = dir / "run";
    ASSERT_EQ(
        limited("", concat("train ", config, " threads=2 --quiet --overwrite --out ", run)).status,
        0);
    const std::string expected = figures(limited("", concat("eval ", run)));
    EXPECT_EQ(figures(limited("", concat("eval ", run, " threads=8"))), expected);
    expect_refusal(limited("OMP_THREAD_LIMIT=1", concat("eval ", run)), 2, 1);
    for (const Limit& limit : kTogether) {
      SCOPED_TRACE(limit.variables);
      EXPECT_EQ(figures(limited(limit.variables, concat("eval ", run, " threads=0"))), expected);
    }
  }
}

TEST(OmpLimits, AreTestedWithEveryModel) {
  const TempDir dir;
  std::map<std::string, int> tested;
  for (const Subject& subject : subjects(dir)) ++tested[subject.model];
  for (const auto& [name, entry] : ModelRegistry::instance().entries()) {
    const bool buildable = name != "deepspeech" || WISP_HAS_SNDFILE;
    EXPECT_GT(tested[name] + !buildable, 0) << name;
  }
}

}  // namespace
}  // namespace wisp
