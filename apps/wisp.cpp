// The program: one subcommand per job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/bench_step.h"
#include "apps/method_list.h"
#include "apps/prepared.h"
#include "apps/report.h"
#include "apps/trainer.h"
#include "apps/version.h"
#include "compression/codec_bench.h"
#include "core/error.h"
#include "core/toml_text.h"
#include "data/dataset.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

constexpr int kUsageError = 2;

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  std::string run;
  std::vector<std::string> runs;
  std::string method;
  bool resume = false, overwrite = false, quiet = false, json = false;
  double seconds = 8.0;
  int64_t numel = 25'000'000;
  double ratio = 0.001;
  int threads = 2;
};

void add_config(CLI::App& command, Arguments& arguments) {
  command.add_option("config", arguments.config, "TOML file")->required()->check(CLI::ExistingFile);
  command.add_option("overrides", arguments.overrides,
                     "keys to change: optimizer.lr=0.05 workers=4");
}

/// Whether the configured data set is read from a folder.
bool takes_path(Config config) {
  make_data_source(config);
  const std::vector<ConfigKey>& keys = config.keys();
  return std::any_of(keys.begin(), keys.end(),
                     [](const ConfigKey& key) { return key.name == "data.path"; });
}

Config load_config(const Arguments& arguments) {
  Config config = Config::load(arguments.config, arguments.overrides);
  const std::string data = environment("WISP_DATA");
  if (!data.empty() && !config.given("data.path") && takes_path(config))
    config.set("data.path", to_toml(data));
  return config;
}

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

RunDirectory::Open how_to_open(const Arguments& arguments) {
  if (arguments.resume) return RunDirectory::Open::resume;
  return arguments.overwrite ? RunDirectory::Open::overwrite : RunDirectory::Open::create;
}

void run_train(const Arguments& arguments) {
  const Config config = load_config(arguments);
  const std::string out =
      arguments.out.empty() ? "runs/" + stem_of(arguments.config) : arguments.out;
  train(config, {out, how_to_open(arguments), arguments.quiet});
}

void run_eval(const Arguments& arguments) {
  const Evaluation evaluation = evaluate_run(arguments.run, arguments.overrides);
  fmt::print("test accuracy {:.2f} %, loss {:.4f}, {} samples\n", 100.0 * evaluation.accuracy,
             evaluation.loss, evaluation.samples);
}

void run_bench_step(const Arguments& arguments) {
  const StepTiming timing =
      bench_step(load_config(arguments), stem_of(arguments.config), arguments.seconds);
  if (arguments.json) {
    fmt::print("{}\n", timing.json());
  } else {
    fmt::print("{} ({}): batch {}, {:.1f} images/s, {:.2f} ms a step\n", timing.name, timing.impl,
               timing.batch, timing.rate, timing.ms);
  }
}

void run_bench_codec(const Arguments& arguments) {
  Config config = Config::from_text("", "command line", arguments.overrides);
  const CodecResult result = bench_codec(arguments.method, config, arguments.numel, arguments.ratio,
                                         arguments.threads, arguments.seconds);
  config.finish();
  if (arguments.json) {
    fmt::print(
        "{{\"method\":\"{}\",\"numel\":{},\"ratio\":{},\"threads\":{},\"encode_ms\":{:.3f},"
        "\"decode_ms\":{:.3f},"
        "\"payload_bytes\":{},\"rel_error\":{:.6g}}}\n",
        result.method, result.numel, result.ratio, result.threads, result.encode_ms,
        result.decode_ms, result.payload_bytes, result.rel_error);
  } else {
    fmt::print(
        "{}: {} gradients, ratio {}, {} threads: encode {:.2f} ms, decode {:.2f} ms, payload {} "
        "bytes, relative "
        "error {:.4f}\n",
        result.method, result.numel, result.ratio, result.threads, result.encode_ms,
        result.decode_ms, result.payload_bytes, result.rel_error);
  }
}

int run(int argc, char** argv) {
  CLI::App program("Wisp: data-parallel training over thin wires", "wisp");
  program.set_version_flag("--version", program_version());
  program.require_subcommand(1);
  Arguments arguments;

  CLI::App& train = *program.add_subcommand("train", "train a model as a config says");
  add_config(train, arguments);
  train.add_option("--out", arguments.out, "run directory (default: runs/NAME of the config)");
  train.add_flag("--resume", arguments.resume, "go on from the checkpoint in --out");
  train.add_flag("--overwrite", arguments.overwrite, "replace the run in --out");
  train.add_flag("--quiet", arguments.quiet, "print nothing but errors");
  train.callback([&] { run_train(arguments); });

  CLI::App& eval = *program.add_subcommand("eval", "evaluate a run's checkpoint on its test set");
  eval.add_option("run", arguments.run, "run directory")->required();
  eval.add_option("overrides", arguments.overrides, "keys to change: data.path=DIR");
  eval.callback([&] { run_eval(arguments); });

  CLI::App& bench = *program.add_subcommand("bench", "time a part of Wisp");
  bench.require_subcommand(1);
  CLI::App& step = *bench.add_subcommand("step", "the trainer's step on one batch in memory");
  add_config(step, arguments);
  step.add_option("--seconds", arguments.seconds, "how long to measure");
  step.add_flag("--json", arguments.json, "one JSON line");
  step.callback([&] { run_bench_step(arguments); });

  CLI::App& codec = *bench.add_subcommand("codec", "encode and decode of one method's payload");
  codec.add_option("--method", arguments.method, "compression method")->required();
  codec.add_option("--numel", arguments.numel, "gradients")->check(CLI::PositiveNumber);
  codec.add_option("--ratio", arguments.ratio, "kept / total of sparse methods");
  codec.add_option("--threads", arguments.threads, "OpenMP threads")->check(CLI::PositiveNumber);
  codec.add_option("--seconds", arguments.seconds, "how long to measure");
  codec.add_flag("--json", arguments.json, "one JSON line");
  codec.add_option("overrides", arguments.overrides,
                   "the method's options: compression.values=f16");
  codec.callback([&] { run_bench_codec(arguments); });

  CLI::App& methods =
      *program.add_subcommand("methods", "list the compression methods, or describe one");
  methods.add_option("method", arguments.method, "the method to describe");
  methods.callback([&] {
    fmt::print("{}", arguments.method.empty() ? list_methods() : describe_method(arguments.method));
  });

  CLI::App& config = *program.add_subcommand("config", "check a config and print it resolved");
  add_config(config, arguments);
  config.callback([&] { fmt::print("{}", Prepared(load_config(arguments)).config().resolved()); });

  CLI::App& report = *program.add_subcommand("report", "compare finished runs");
  report.add_option("runs", arguments.runs, "run directories")->required();
  report.callback([&] { fmt::print("{}", report_table(arguments.runs)); });

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : kUsageError;  // --help is no error
  }
  return 0;
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  try {
    return wisp::run(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "wisp: {}\n", error.what());
    return 1;
  }
}
