#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/lab/bench_step.h"
#include "apps/setup/train_options.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/device/device_remarks.h"
#include "core/io/output_streams.h"
#include "distributed/bench/codec_bench.h"

namespace wisp {
namespace {

/// A check of an option. CLI::Range lets NaN pass.
CLI::Validator within(double least, double most) {
  const auto refusal = [=](std::string& text) {
    const double value = std::strtod(text.c_str(), nullptr);
    return least <= value && value <= most
               ? std::string()
               : concat(text, ", expected a number from ", least, " to ", most);
  };
  return {refusal, ""};
}

struct StepArguments {
  ConfigArguments config;
  double seconds = 8.0;
  int64_t steps = 5;
  bool json = false;
};

void run_step(const StepArguments& arguments) {
  const StepTiming timing = bench_step(arguments.config.load(), arguments.config.stem(),
                                       arguments.seconds, arguments.steps);
  for (const std::string& remark : take_device_remarks()) write_notice(remark);
  if (arguments.json) {
    write_out(fmt::format("{}\n", timing.json()));
  } else {
    write_out(fmt::format("{} ({}): batch {}, {:.1f} {}, {:.2f} ms a step\n", timing.name,
                          timing.impl, timing.batch, timing.rate, timing.unit, timing.ms));
    if (timing.device.kernels > 0) {
      const auto of_step = [&](int64_t count) {
        return static_cast<double>(count) / static_cast<double>(timing.steps);
      };
      write_out(fmt::format(
          "a step of a worker asks the device for {:.1f} kernels, {:.1f} calls of libraries "
          "and {:.1f} copies\n",
          of_step(timing.device.kernels), of_step(timing.device.calls),
          of_step(timing.device.copies)));
      if (timing.device.fallbacks > 0)
        write_out(fmt::format(
            "{:.1f} convolutions of it run in f32, because the library has none in bf16\n",
            of_step(timing.device.fallbacks)));
    }
  }
}

void add_step(CLI::App& bench) {
  const auto [command, arguments] = add_command<StepArguments>(
      bench, "step", "time a training step on one batch in memory", run_step);
  command.footer("Example:\n  wisp bench step apps/configs/cifar10_resnet20.toml threads=2 --json");
  arguments.config.add_to(command);
  add_number(command, "--seconds", arguments.seconds, "duration of the measurement",
             within(0.0, 1e6));
  add_number(command, "--steps", arguments.steps, "least number of timed steps",
             CLI::PositiveNumber);
  command.add_flag("--json", arguments.json, "print one JSON line");
}

struct CodecArguments {
  std::string method;
  bool all = false;
  std::vector<std::string> overrides;
  CodecBenchOptions options;
  bool json = false;
};

std::string json(const CodecResult& result, const std::string& options) {
  const nlohmann::ordered_json row = {{"method", result.method},
                                      {"options", options},
                                      {"numel", result.options.numel},
                                      {"ratio", result.options.ratio},
                                      {"zero_rows", result.options.zero_rows},
                                      {"threads", result.options.threads},
                                      {"device", result.options.device.str()},
                                      {"rounds", result.rounds},
                                      {"encode_ms", result.encode_ms},
                                      {"encode_limit_ms", result.encode_limit_ms},
                                      {"decode_ms", result.decode_ms},
                                      {"decode_limit_ms", result.decode_limit_ms},
                                      {"decode4_ms", result.decode4_ms},
                                      {"decode4_limit_ms", result.decode4_limit_ms},
                                      {"payload_bytes", result.payload_bytes},
                                      {"state_bytes", result.state_bytes},
                                      {"scratch_bytes", result.scratch_bytes},
                                      {"rel_error", result.rel_error},
                                      {"cosine", result.cosine},
                                      {"bias", result.bias}};
  return row.dump();
}

std::string text(const CodecResult& result, const std::string& options) {
  const auto times = [](double ms, double limit) {
    return fmt::format("{:8.2f} ({:4.2f}x)", ms, ms / limit);
  };
  return fmt::format("{:<14} {} {} {} {:>11} {:>11} {:>10} {:8.4f} {:7.4f} {:8.4f}  {}",
                     result.method, times(result.encode_ms, result.encode_limit_ms),
                     times(result.decode_ms, result.decode_limit_ms),
                     times(result.decode4_ms, result.decode4_limit_ms), result.payload_bytes,
                     result.state_bytes, result.scratch_bytes, result.rel_error, result.cosine,
                     result.bias, options);
}

/// With arguments.all, ignores keys that only other methods have.
void bench_method(const CodecArguments& arguments, const std::string& method,
                  const std::string& more = {}) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!more.empty()) overrides.push_back(more);
  const auto make = [&](int workers) {
    Config config = Config::from_text("", "command line", overrides);
    auto compressor = CompressorRegistry::instance()
                          .find("compression method", method)
                          .make(config, {.workers = workers, .momentum = 0.9});
    if (!arguments.all) config.finish();
    return compressor;
  };
  const CodecResult result = bench_codec(method, make, arguments.options);
  const std::string options = fmt::format("{}", fmt::join(overrides, " "));
  write_out(fmt::format("{}\n", arguments.json ? json(result, options) : text(result, options)));
}

/// Benchmarks every method at its defaults, except a threshold that random gradients pass now and
/// then, and top-k with both selections.
void bench_all(const CodecArguments& arguments) {
  for (const auto& [name, entry] : CompressorRegistry::instance().entries()) {
    if (name == "none") continue;
    const std::string suits = name == "threshold"
                                  ? fmt::format("compression.threshold={:.4g}",
                                                std::sqrt(-2.0 * std::log(arguments.options.ratio)))
                                  : "";
    bench_method(arguments, name, suits);
    if (name == "topk") bench_method(arguments, name, "compression.selection=sampled");
  }
}

/// Takes the override of `device`; the others are for the method.
void take_device(CodecArguments& arguments) {
  Config config = Config::from_text("", "command line", arguments.overrides);
  std::string device = "cpu";
  arguments.options.device = bind_device(config, device);
  std::erase_if(arguments.overrides,
                [](const std::string& key) { return key.starts_with("device="); });
}

void run_codec(CodecArguments arguments) {
  WISP_CHECK(arguments.all == arguments.method.empty(),
             "bench codec: expected --method NAME or --all");
  take_device(arguments);
  if (!arguments.json) {
    write_out(fmt::format("{} gradients, ratio {}, {} threads, {}; (x): times the limit\n",
                          arguments.options.numel, arguments.options.ratio,
                          arguments.options.threads, arguments.options.device.str()));
    write_out(fmt::format("{:<14} {:>16} {:>16} {:>16} {:>11} {:>11} {:>10} {:>8} {:>7} {:>8}\n",
                          "method", "encode ms", "decode 1", "decode 4", "payload", "state",
                          "scratch", "error", "cosine", "bias"));
  }
  if (arguments.all) return bench_all(arguments);
  bench_method(arguments, arguments.method);
}

void add_codec(CLI::App& bench) {
  const auto [command, arguments] = add_command<CodecArguments>(
      bench, "codec", "time encode and decode of compression methods", run_codec);
  command.footer(R"(Examples:
  wisp bench codec --method dgc --numel 25000000 --ratio 0.001
  wisp bench codec --all --json
device=cuda measures on the first GPU, by the GPU's clock. device=emulated is for builds without CUDA.)");
  CodecBenchOptions& options = arguments.options;
  command.add_option("--method", arguments.method, "compression method");
  command.add_flag("--all", arguments.all,
                   "every method, with a threshold that suits the gradients");
  add_number(command, "--numel", options.numel, "number of gradients", CLI::PositiveNumber);
  add_number(command, "--ratio", options.ratio, "kept / total elements of sparse methods",
             within(1e-9, 1.0));
  add_number(command, "--zero-rows", options.zero_rows,
             "share of zero rows in a matrix, as in gradients of an embedding", within(0.0, 1.0));
  add_number(command, "--threads", options.threads, "OpenMP threads", CLI::Range(1, kMostThreads));
  add_number(command, "--seconds", options.seconds, "duration of the measurement of each method",
             within(0.0, 1e6));
  command.add_flag("--json", arguments.json, "print one JSON line per method");
  command.add_option("overrides", arguments.overrides,
                     "the method's options and the device: compression.values=f16 device=cuda");
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App& bench = *program.add_subcommand("bench", "time a part of Wisp");
  bench.require_subcommand(1);
  add_step(bench);
  add_codec(bench);
}

}  // namespace wisp
