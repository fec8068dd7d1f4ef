#include <fmt/format.h>

#include <memory>

#include "apps/bench_step.h"
#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "compression/codec_bench.h"

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
  std::vector<std::string> overrides;
  int64_t numel = 25'000'000;
  double ratio = 0.001;
  int threads = 2;
  double seconds = 8.0;
  bool json = false;
};

void run_codec(const CodecArguments& arguments) {
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

void add_codec(CLI::App& bench) {
  CLI::App& command = *bench.add_subcommand("codec", "encode and decode of one method's payload");
  command.footer("Example:\n  wisp bench codec --method dgc --numel 25000000 --ratio 0.001");
  const auto arguments = std::make_shared<CodecArguments>();
  command.add_option("--method", arguments->method, "compression method")->required();
  command.add_option("--numel", arguments->numel, "gradients")->check(CLI::PositiveNumber);
  command.add_option("--ratio", arguments->ratio, "kept / total of sparse methods");
  command.add_option("--threads", arguments->threads, "OpenMP threads")->check(CLI::PositiveNumber);
  command.add_option("--seconds", arguments->seconds, "how long to measure");
  command.add_flag("--json", arguments->json, "one JSON line");
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
