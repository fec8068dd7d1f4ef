// Tests of the program as a user starts it: exit statuses and messages.
#include "tests/support/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/speech/arpa.h"
#include "core/device/device.h"
#include "core/io/visible_text.h"
#include "data/npy.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = read_text(entry.path().string());
  }
  return files;
}

TEST_F(Program, ExitStatusesTellWhatHappened) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(run({"train"}), 2) << "no config";
  EXPECT_EQ(run({"train", dir_ / "absent.toml"}), 2);
  EXPECT_EQ(run({"train", config(), "optimizer.rate=1", "--out", dir_ / "run"}), 1);
  EXPECT_NE(said().find("wisp: "), std::string::npos) << said();
  EXPECT_EQ(run({"train", config(), "train.epochs=1", "--out", dir_ / "run"}), 0);
}

TEST_F(Program, SaysWhichCommandOrOptionWasMeant) {
  const auto told = [&](const std::vector<std::string>& arguments) {
    EXPECT_EQ(run(arguments), 2);
    return said().substr(0, said().find('\n'));
  };
  EXPECT_EQ(told({"trian", config()}), "unknown command 'trian'; did you mean 'train'?");
  EXPECT_EQ(told({"bench", "stop"}), "unknown command 'stop'; did you mean 'step'?");
  EXPECT_EQ(told({"xyzzy"}), "unknown command 'xyzzy'");
  EXPECT_EQ(told({"train", config(), "--quite"}),
            "unknown option '--quite'; did you mean '--quiet'?");
  EXPECT_EQ(told({"--versoin"}), "unknown option '--versoin'; did you mean '--version'?");
}

TEST_F(Program, WithoutACommandPrintsItsHelp) {
  ASSERT_EQ(run({"--help"}), 0);
  const std::string help = said();
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(said(), help);
  EXPECT_EQ(run({"bench"}), 2);
  EXPECT_NE(said().find("step"), std::string::npos) << said();
  EXPECT_EQ(help.find("  complete "), std::string::npos) << "shells call it";
}

TEST_F(Program, ItsReferenceIsTheOneInTheDocs) {
  ASSERT_EQ(run({"config", "--reference"}), 0);
  EXPECT_EQ(said(), read_text(WISP_SOURCE "/docs/config.md"))
      << "after a change of keys: wisp config --reference > docs/config.md";
}

TEST_F(Program, ListsWhatItCanTrainOn) {
  ASSERT_EQ(run({"devices"}), 0) << said();
  EXPECT_TRUE(said().starts_with("cpu  ")) << said();
  EXPECT_NE(said().find(concat("\n", device_kind())), std::string::npos) << said();
  ASSERT_EQ(run({"devices", "--json"}), 0) << said();
  const auto list = nlohmann::json::parse(said());
  EXPECT_EQ(list["devices"][0]["device"], "cpu");
  EXPECT_FALSE(list["devices"][0]["numerics"].get<std::string>().empty());
  EXPECT_TRUE(list["no_cuda"].is_string());
}

TEST_F(Program, MeasuresMethodsOnADeviceByName) {
  const auto bench = [&](const std::string& device) {
    return run({"bench", "codec", "--method", "topk", "--numel", "1000", "--seconds", "0", "--json",
                "device=" + device});
  };
  ASSERT_EQ(bench("cpu"), 0) << said();
  const auto cpu = nlohmann::json::parse(said());
  EXPECT_EQ(cpu["device"], "cpu");
  EXPECT_EQ(cpu["options"], "") << "the method's";
  EXPECT_EQ(bench("gpu"), 1);
  EXPECT_EQ(said(), "wisp: command line: device is 'gpu', expected cpu, cuda or emulated\n");
  if (std::string(device_kind()) != "emulated") return;
  ASSERT_EQ(bench("emulated"), 0) << said();
  const auto emulated = nlohmann::json::parse(said());
  EXPECT_EQ(emulated["device"], "emulated:0");
  EXPECT_EQ(emulated["payload_bytes"], cpu["payload_bytes"]);
}

TEST_F(Program, RemarksOnCompressionThatCannotMatter) {
  const std::string remark = "a single worker exchanges nothing: compression.method dgc";
  for (const int workers : {1, 2}) {
    ASSERT_EQ(run({"train", config(), concat("workers=", workers), "compression.method=dgc",
                   "train.max_steps=1", "--out", dir_ / "run", "--overwrite"}),
              0)
        << said();
    EXPECT_EQ(said().find(remark) != std::string::npos, workers == 1) << said();
  }
}

TEST_F(Program, NamesWhatAMethodLeavesDense) {
  ASSERT_EQ(run({"train", config(), "workers=2", "model.hidden=[24]", "compression.method=powersgd",
                 "train.max_steps=1", "--out", dir_ / "run"}),
            0)
      << said();
  EXPECT_NE(said().find("layer1.weight stays dense: powersgd would send 136 numbers a step"),
            std::string::npos)
      << said();
  EXPECT_EQ(said().find("layer0.weight stays dense"), std::string::npos) << said();
}

TEST_F(Program, PlansWithoutTheDataSet) {
  const std::string cifar = dir_.write("cifar.toml", R"(
workers = 4
data = { name = "cifar10", path = "nowhere" }
compression.method = "dgc"
)");
  ASSERT_EQ(run({"plan", cifar}), 0) << said();
  EXPECT_NE(said().find("classifier.weight"), std::string::npos) << said();
  ASSERT_EQ(run({"plan", cifar, "--json"}), 0) << said();
  EXPECT_EQ(said().front(), '{');
}

TEST_F(Program, SaysWhatTheDataIs) {
  ASSERT_EQ(run({"data", config()}), 0) << said();
  EXPECT_NE(said().find("steps of an epoch"), std::string::npos) << said();
  ASSERT_EQ(run({"data", config(), "--json"}), 0) << said();
  EXPECT_EQ(said().front(), '{');
  EXPECT_EQ(run({"data", config(), "--count", "3"}), 2) << "pictures, but no folder for them";
  const std::string cifar =
      dir_.write("cifar.toml", "data = { name = 'cifar10', path = 'nowhere' }");
  EXPECT_EQ(run({"data", cifar}), 1);
  const std::string why = said();
  EXPECT_EQ(run({"train", cifar, "--out", dir_ / "run"}), 1);
  EXPECT_EQ(said(), why) << "as in training";
}

TEST_F(Program, GoesOnWithATextAndScoresOne) {
  const std::string text = dir_.write("text", tiny_lines(100)), run_path = dir_ / "run",
                    mine = dir_.write("mine.txt", "one two drei\n");
  tiny_text_train(run_path, text, {"train.epochs=1"});
  ASSERT_EQ(run({"generate", run_path, "--prompt", "one zwei two", "--tokens", "5", "--seed", "3"}),
            0)
      << said();
  EXPECT_TRUE(
      said().starts_with("wisp: read as <unk>, as the run does not know them: zwei\n"
                         "one <unk> two"))
      << said();
  const std::vector<std::string> json = {"generate",      run_path, "--json",  "--tokens", "4",
                                         "--temperature", "0.5",    "--top-k", "3"};
  ASSERT_EQ(run(json), 0) << said();
  const std::string first = said();
  EXPECT_NE(first.find("\"log_probabilities\":[-"), std::string::npos) << first;
  ASSERT_EQ(run(json), 0);
  EXPECT_EQ(said(), first);
  EXPECT_EQ(run({"generate", run_path, "--prompt", "zwei"}), 1);
  const std::vector<std::vector<std::string>> refused = {
      {"--temperature", "-1", "a temperature of -1, expected 0 or more"},
      {"--top-k", "-1", "top-k is -1, expected 0 (all words) or more"},
      {"--tokens", "0", "0 tokens, expected 1 or more"}};
  for (const std::vector<std::string>& option : refused) {
    EXPECT_EQ(run({"generate", run_path, "--prompt", "one", option[0], option[1]}), 1);
    EXPECT_EQ(said(), concat("wisp: generate: ", option[2], "\n"));
  }

  ASSERT_EQ(run({"score", run_path, mine}), 0) << said();
  EXPECT_NE(said().find("3 words, each but the text's first, a line's end is one; 33.33 % unknown"),
            std::string::npos)
      << said();
  ASSERT_EQ(run({"score", run_path, mine, "--json"}), 0) << said();
  EXPECT_NE(said().find("\"words\":3,\"unknown\":1,"), std::string::npos) << said();
  EXPECT_EQ(run({"score", run_path, dir_ / "absent"}), 1);
  EXPECT_EQ(said(), concat("wisp: ", dir_ / "absent", ": there is no such file\n"));
  EXPECT_EQ(run({"score", run_path, dir_ / ""}), 1);
  EXPECT_EQ(run({"score", run_path, dir_.write("bytes", "one two\n\xff")}), 1);
  EXPECT_EQ(said(), concat("wisp: ", dir_ / "bytes", ": byte 8, in line 2, is no UTF-8\n"));
}

TEST_F(Program, WordsAndPathsDoNotReachTheTerminalRaw) {
  const std::string word = "a\x1b[2J\u009b", folder = dir_ / "b\x1b[1A\nc";
  std::filesystem::create_directories(folder);
  std::string lines = tiny_lines(100);
  for (int i = 0; i < 50; ++i) lines += word + " one two\n";
  const std::string text = dir_.write("b\x1b[1A\nc/text", lines), run_path = folder + "/run";
  tiny_text_train(run_path, text, {"train.epochs=1"});
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"generate", run_path, "--prompt", word + " \x1b[3J", "--tokens",
                                 "9"},
        {"generate", run_path, "--json", "--prompt", word},
        {"score", run_path, text},
        {"report", run_path},
        {"diff", run_path, run_path},
        {"eval", run_path},
        {"lm", text, "--out", folder + "/lm"},
        {"export", run_path, "--to", folder + "/w.safetensors"},
        {"import", text, text},
        {"train", text},
        {"train", config(), "model.name=\x1b[2J", "--out", folder},
        {"score", run_path, folder + "/none"},
        {"table", folder + "/none.toml"},
        {"\x1b[2J"},
        {"train", "--\x1b[2J"}}) {
    run(arguments);
    EXPECT_EQ(visible_lines(said()), said()) << arguments[0];
    EXPECT_EQ(said().find("[1A\nc"), std::string::npos) << said();
  }
  ASSERT_EQ(run({"generate", run_path, "--prompt", word}), 0) << said();
  EXPECT_TRUE(said().starts_with("a\\x1b[2J\\u009b ")) << said();
}

TEST_F(Program, PrintsTheAccuracyOfEachClass) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=2", "--quiet", "--out", dir_ / "run"}), 0);
  ASSERT_EQ(run({"eval", dir_ / "run", "--classes"}), 0) << said();
  EXPECT_NE(said().find("targets accuracy  test by class\n      4 "), std::string::npos) << said();
  EXPECT_TRUE(said().ends_with(" %  9\n")) << said();
  ASSERT_EQ(run({"eval", dir_ / "run", "--classes", "--json"}), 0) << said();
  EXPECT_NE(said().find("\"targets\": 4,\n        \"correct\": "), std::string::npos) << said();
  tiny_text_train(dir_ / "text_run", dir_.write("text", tiny_lines(100)), {"train.max_steps=3"});
  EXPECT_EQ(run({"eval", dir_ / "text_run", "--classes"}), 1);
  EXPECT_EQ(said(),
            "wisp: --classes: needs a run that gives each sample one class, but those of the run "
            "(tokens) are sequences\n");
}

TEST_F(Program, SaysThatAnEvaluationIsNotFinite) {
  const std::string run_path = dir_ / "run";
  tiny_text_train(run_path, dir_.write("text", tiny_lines(100)),
                  {"optimizer.lr=1e300", "clip.norm=0.0", "train.max_steps=3"});
  ASSERT_EQ(run({"eval", run_path}), 0) << said();
  for (const char* split : {"test", "validation"})
    EXPECT_NE(
        said().find(concat("wisp: ", split, ": the loss is not finite; has the model diverged?")),
        std::string::npos)
        << said();
  EXPECT_NE(said().find("test perplexity -, loss nan, "), std::string::npos) << said();
}

/// No command hides it, not even with --quiet.
TEST_F(Program, NeverHidesThatADamagedCheckpointWasPassedOver) {
  const std::string path = dir_ / "run";
  ASSERT_EQ(run({"train", config(), "train.max_steps=6", "--quiet", "--out", path}), 0);
  EXPECT_EQ(said(), "");
  std::filesystem::resize_file(path + "/checkpoints/step_6/rank_0.safetensors", 9);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"eval", path},
        {"export", path, "--to", dir_ / "weights.safetensors"},
        {"train", config(), "train.max_steps=7", "--resume", "--quiet", "--out", path}}) {
    EXPECT_EQ(run(command), 0) << said();
    EXPECT_TRUE(said().starts_with(concat("wisp: ", path, "/checkpoints/step_6/rank_0"))) << said();
    EXPECT_NE(said().find("; going on from step 4\n"), std::string::npos) << said();
  }
}

TEST_F(Program, FailsIfItsOutputCannotBeWritten) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=2", "--quiet", "--out", dir_ / "run"}), 0);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"methods"},
                                                    {"devices", "--json"},
                                                    {"config", config()},
                                                    {"eval", dir_ / "run", "--json"},
                                                    {"report", dir_ / "run"},
                                                    {"diff", dir_ / "run", dir_ / "run"},
                                                    {"plan", config()},
                                                    {"data", config()},
                                                    {"bench", "step", config(), "--seconds=0.1"},
                                                    {"completion", "bash"},
                                                    {"table"},
                                                    {"--version"},
                                                    {"--help"}}) {
    std::vector<std::string> command = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >/dev/full",
                                        WISP_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    start_command(command);
    EXPECT_EQ(wait(), 1) << arguments[0];
    EXPECT_NE(said().find("wisp: the output could not be written"), std::string::npos)
        << arguments[0] << ": " << said();
  }
}

TEST_F(Program, WritesTheSameFilesWithoutStandardStreams) {
  const std::vector<std::string> arguments = {"train", config(), "train.max_steps=6"};
  for (const char* how : {"open", "closed"}) {
    std::vector<std::string> command = {
        "/bin/sh", "-c",
        concat("exec \"$0\" \"$@\"", how == std::string("closed") ? " <&- >&- 2>&-" : ""),
        WISP_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--out", dir_ / how});
    start_command(command);
    EXPECT_EQ(wait(), 0) << said();
  }
  const auto lines = [&](const char* how) {
    const std::string text = read_text(concat(dir_ / how, "/metrics.jsonl"));
    EXPECT_TRUE(text.starts_with("{")) << text;
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(lines("closed"), lines("open"));
}

TEST_F(Program, SaysWhatThePlanRemarksWithoutProgressToo) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=1", "--quiet", "--out", dir_ / "run",
                 "compression.policy=[{name=\"none\", method=\"topk\"}]"}),
            0);
  EXPECT_NE(said().find("decides nothing"), std::string::npos) << said();
}

TEST_F(Program, MakesNgramModels) {
  const std::string text = dir_.write("lines", "a b\na c\n"), out = dir_ / "t.arpa";
  ASSERT_EQ(run({"lm", text, "--order", "2", "--out", out, "--perplexity", text}), 0) << said();
  EXPECT_TRUE(said().starts_with(concat(out, ": 6 1-grams, 5 2-grams\n", text, ": perplexity ")))
      << said();
  EXPECT_NE(said().find("6 words of 2 sentences, whose ends are words; 0.00 % unknown\n"),
            std::string::npos)
      << said();
  EXPECT_EQ(read_arpa(out).order(), 2);
  EXPECT_EQ(run({"lm", dir_.write("bad", "a <s>\n"), "--out", out}), 1);
  EXPECT_EQ(said(), concat("wisp: ", dir_ / "bad",
                           ": line 1 has the word <s>, which marks the beginning or end of a line; "
                           "expected a text without it\n"));
  EXPECT_EQ(run({"lm", text, "--out", out, "--perplexity", dir_ / "absent"}), 1);
  EXPECT_EQ(said(), concat("wisp: ", dir_ / "absent", ": there is no such file\n"));
  EXPECT_EQ(run({"lm", text, "--out", out, "--order", "0"}), 2);
  EXPECT_EQ(run({"lm", text}), 2);
}

TEST_F(Program, FeedsRecordedGradientsToAMethod) {
  ASSERT_EQ(
      run({"train", config(), "train.epochs=1", "record.gradients.every=1", "--out", dir_ / "run"}),
      0)
      << said();
  const std::string rank = dir_ / "run/gradients/rank_";
  ASSERT_EQ(
      run({"codec", "--method", "topk", "compression.ratio=0.01", "--in",
           rank + "0/layer0.weight.npy", rank + "1/layer0.weight.npy", "--out", dir_ / "lab"}),
      0)
      << said();
  EXPECT_NE(said().find("topk: 4 steps of 2 workers"), std::string::npos) << said();
  for (const char* file : {"mean.npy", "residual_1.npy", "payload_0.bin", "steps.jsonl"})
    EXPECT_TRUE(std::filesystem::exists(dir_ / (std::string("lab/") + file))) << file;
}

TEST_F(Program, TakesTheShapeOfALayerAsItIsDocumented) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=1", "record.gradients.every=1", "--out",
                 dir_ / "run"}),
            0)
      << said();
  const std::string file = dir_ / "run/gradients/rank_0/layer0.weight.npy";  // 128 x 3072
  const auto shaped = [&](const std::string& shape) {
    return run(
        {"codec", "--method", "topk", "--shape", shape, "--in", file, "--out", dir_ / "lab"});
  };
  ASSERT_EQ(shaped("64x6144"), 0) << said();
  EXPECT_EQ(NpyReader(dir_ / "lab/mean.npy").row_shape(), Shape({64, 6144}));
  ASSERT_EQ(shaped("393216"), 0) << said();
  EXPECT_EQ(NpyReader(dir_ / "lab/mean.npy").row_shape(), Shape({393216}));
  EXPECT_EQ(shaped("64x576"), 1);
  EXPECT_NE(said().find("the layer's shape is (64, 576)"), std::string::npos) << said();
  for (const std::string bad :
       {"64x", "x", "x64", "", "0x3", "-1x3", "64xabc", "64x1.5", "64 x 6144",
        "4294967296x4294967296", "9223372036854775808", "1x1x1x1x1x1x1"}) {
    EXPECT_EQ(shaped(bad), 2) << bad;
    EXPECT_NE(said().find("--shape: '" + bad + "' is no shape; expected 1 to 6 extents"),
              std::string::npos)
        << said();
  }
}

TEST_F(Program, RefusesNumbersOutOfRange) {
  for (const char* option :
       {"--seconds=nan", "--seconds=inf", "--ratio=nan", "--ratio=2", "--zero-rows=-0.5"}) {
    EXPECT_EQ(run({"bench", "codec", "--method=topk", "--numel=1000", option}), 2) << option;
    EXPECT_NE(said().find(", expected a number from "), std::string::npos) << said();
  }
}

/// Batch systems limit a job's addresses, which cost nothing, to the memory that it asked for.
TEST_F(Program, RunsWithinALimitOfAddresses) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"train", config(), "workers=2", "train.max_steps=2", "--out",
                                 dir_ / "run"},
        {"eval", dir_ / "run"}}) {
    std::vector<std::string> command = {"/bin/sh", "-c", "ulimit -v 4000000; exec \"$0\" \"$@\"",
                                        WISP_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    start_command(command);
    EXPECT_EQ(wait(), 0) << said();
  }
}

TEST_F(Program, OnAReadOnlyFileSystemTheRunStaysAndTheErrorSaysWhere) {
  ASSERT_EQ(run({"train", config(), "train.max_steps=6", "--out", dir_ / "run"}), 0) << said();
  if (run_read_only({"true"}) != 0) GTEST_SKIP() << "needs to mount: " << said();
  const auto before = files_below(dir_ / "run");
  const auto expect_refused = [&](const std::vector<std::string>& words, const char* why) {
    std::vector<std::string> command = {WISP_PROGRAM};
    command.insert(command.end(), words.begin(), words.end());
    EXPECT_EQ(run_read_only(command), 1) << words[0];
    EXPECT_NE(said().find(why), std::string::npos) << said();
    EXPECT_NE(said().find("Read-only file system"), std::string::npos) << said();
  };
  expect_refused({"train", config(), "--out", dir_ / "new"}, "cannot make the run directory");
  expect_refused({"train", config(), "--out", dir_ / "run", "--resume"}, "run/lock");
  expect_refused({"train", config(), "--out", dir_ / "run", "--overwrite"}, "run/lock");
  expect_refused({"sweep", config(), "seed=1,2", "--out", dir_ / "sweep"},
                 "cannot make the directory of the runs");
  expect_refused({"export", dir_ / "run", "--to", dir_ / "weights.safetensors"},
                 "weights.safetensors");
  EXPECT_EQ(files_below(dir_ / "run"), before);
  EXPECT_EQ(run_read_only({WISP_PROGRAM, "eval", dir_ / "run"}), 0) << said();
  EXPECT_EQ(run({"train", config(), "train.max_steps=8", "--out", dir_ / "run", "--resume"}), 0)
      << said();
}

}  // namespace
}  // namespace wisp
