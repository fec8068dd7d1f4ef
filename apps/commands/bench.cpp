#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "apps/bench_step.h"
#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "core/error.h"
#include "distributed/codec_bench.h"

namespace wisp {
namespace {

struct StepArguments {
  ConfigArguments config;
  double seconds = 8.0;
  bool json = false;
};

void run_step(const StepArguments& arguments) {
  const StepTiming timing =
      bench_step(arguments.config.load(), arguments.config.stem(), arguments.seconds);
  if (arguments.json) {
    fmt::print("{}\n", timing.json());
  } else {
    fmt::print("{} ({}): batch {}, {:.1f} images/s, {:.2f} ms a step\n", timing.name, timing.impl,
               timing.batch, timing.rate, timing.ms);
  }
}

void add_step(CLI::App& bench) {
  CLI::App& command = *bench.add_subcommand("step", "the trainer's step on one batch in memory");
  command.footer("Example:\n  wisp bench step apps/configs/cifar10_resnet20.toml threads=2 --json");
  const auto arguments = std::make_shared<StepArguments>();
  arguments->config.add_to(command);
  command.add_option("--seconds", arguments->seconds, "how long to measure");
  command.add_flag("--json", arguments->json, "one JSON line");
  command.callback([arguments] { run_step(*arguments); });
}

struct CodecArguments {
  std::string method;
  bool all = false;
  std::vector<std::string> overrides;
  CodecBenchOptions options;
  bool json = false;
};

CodecResult bench_method(const CodecArguments& arguments, const std::string& method) {
  const auto make = [&](int workers) {
    Config config = Config::from_text("", "command line", arguments.overrides);
    auto compressor = CompressorRegistry::instance()
                          .find("compression method", method)
                          .make(config, {.workers = workers, .momentum = 0.9});
    if (!arguments.all) config.finish();
    return compressor;
  };
  return bench_codec(method, make, arguments.options);
}

void print(const CodecResult& result, bool json) {
  if (json) {
    fmt::print("{}\n", result.json());
  } else {
    const auto times = [](double ms, double limit) {
      return fmt::format("{:8.2f} ({:4.2f}x)", ms, ms / limit);
    };
    fmt::print("{:<14} {} {} {} {:>11} {:>11} {:>10} {:8.4f} {:7.4f} {:8.4f}\n", result.method,
               times(result.encode_ms, result.encode_limit_ms),
               times(result.decode_ms, result.decode_limit_ms),
               times(result.decode4_ms, result.decode4_limit_ms), result.payload_bytes,
               result.state_bytes, result.scratch_bytes, result.rel_error, result.cosine,
               result.bias);
  }
  std::fflush(stdout);
}

void run_codec(const CodecArguments& arguments) {
  WISP_CHECK(arguments.all == arguments.method.empty(),
             "bench codec: expected --method NAME or --all");
  if (!arguments.json) {
    fmt::print("{} gradients, ratio {}, {} threads; (x): times the limit of plain loops\n",
               arguments.options.numel, arguments.options.ratio, arguments.options.threads);
    fmt::print("{:<14} {:>16} {:>16} {:>16} {:>11} {:>11} {:>10} {:>8} {:>7} {:>8}\n", "method",
               "encode ms", "decode 1", "decode 4", "payload", "state", "scratch", "error",
               "cosine", "bias");
  }
  if (!arguments.all) return print(bench_method(arguments, arguments.method), arguments.json);
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    if (name != "none") print(bench_method(arguments, name), arguments.json);
}

void add_codec(CLI::App& bench) {
  CLI::App& command = *bench.add_subcommand("codec", "encode and decode of methods' payloads");
  command.footer(
      "Examples:\n  wisp bench codec --method dgc --numel 25000000 --ratio 0.001\n"
      "  wisp bench codec --all --json");
  const auto arguments = std::make_shared<CodecArguments>();
  CodecBenchOptions& options = arguments->options;
  command.add_option("--method", arguments->method, "compression method");
  command.add_flag("--all", arguments->all, "every method, at its defaults");
  command.add_option("--numel", options.numel, "gradients")->check(CLI::PositiveNumber);
  command.add_option("--ratio", options.ratio, "kept / total of sparse methods");
  command.add_option("--threads", options.threads, "OpenMP threads")->check(CLI::PositiveNumber);
  command.add_option("--seconds", options.seconds, "how long to measure each method");
  command.add_flag("--json", arguments->json, "one JSON line per method");
  command.add_option("overrides", arguments->overrides,
                     "the method's options: compression.values=f16");
  command.callback([arguments] { run_codec(*arguments); });
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App& bench = *program.add_subcommand("bench", "time a part of Wisp");
  bench.require_subcommand(1);
  add_step(bench);
  add_codec(bench);
}

}  // namespace wisp
