#include <fmt/format.h>

#include <limits>

#include "apps/commands/commands.h"
#include "apps/lab/codec_lab.h"
#include "core/base/number.h"
#include "core/io/output_streams.h"
#include "core/io/toml_text.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct CodecLabArguments {
  std::string method;
  std::vector<std::string> overrides;
  LabRequest request;
};

/// The shape given as "64x576".
Shape shape_of(const std::string& text) {
  std::vector<int64_t> extents;
  int64_t numel = 1;
  for (size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find('x', begin);
    const int64_t extent = number_in<int64_t>(text.substr(begin, end - begin)).value_or(0);
    if (extent < 1 || extents.size() == Shape::kMaxRank ||
        numel > std::numeric_limits<int64_t>::max() / extent)
      throw CLI::ValidationError(
          "--shape",
          fmt::format("'{}' is no shape; expected 1 to {} extents of 1 or more, as 64x576", text,
                      Shape::kMaxRank));
    extents.push_back(extent);
    numel *= extent;
  }
  return Shape(std::span<const int64_t>(extents));
}

void run_codec_lab(const CodecLabArguments& arguments) {
  const LabRequest& request = arguments.request;
  Config config = Config::from_text("", "command line", arguments.overrides);
  WISP_CHECK(!config.given("compression.method"), config.where("compression.method"),
             ": compression.method has no place here: --method names it");
  config.set("compression.method", to_toml(arguments.method));
  const LabSummary summary = run_lab(std::move(config), request);
  write_out(fmt::format(
      "{}: {} steps of {} workers and {} elements, {} of them compressed; {:.0f} bytes sent a step "
      "and worker, {:.1f}x less than dense; relative error {:.4g}, cosine {:.4g}\n",
      arguments.method, summary.steps, request.inputs.size(), summary.numel, summary.compressed,
      summary.bytes_sent, summary.reduction_sent, summary.relative_error, summary.cosine));
  if (summary.cosines < summary.steps)
    write_out(fmt::format(
        "the cosine is undefined in {} steps, where one of the means is zero or not finite\n",
        summary.steps - summary.cosines));
  const auto left_out = [](int64_t steps, const char* what) {
    if (steps > 0)
      write_out(fmt::format(
          "a worker's gradient {} in {} steps and counted as zero; steps.jsonl names steps and "
          "ranks\n",
          what, steps));
  };
  left_out(summary.nonfinite, "was not finite");
  left_out(summary.too_large, "was finite, but had a norm above 2^96,");
  for (const std::string& remark : summary.remarks) write_out(visible(remark) + "\n");
}

}  // namespace

void add_codec_lab(CLI::App& program) {
  const auto [command, arguments] = add_command<CodecLabArguments>(
      program, "codec", "feed recorded gradients to a compression method, without a model",
      run_codec_lab);
  command.add_option("--method", arguments.method, "one of `wisp methods`")->required();
  command.add_option("overrides", arguments.overrides,
                     "keys as for train: compression.ratio=0.01 optimizer.momentum=0.9");
  command
      .add_option("--in", arguments.request.inputs,
                  "NumPy files, one per worker; each row is a step, the gradient of the worker's "
                  "own mean loss")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("--out", arguments.request.out, "output directory")->required();
  command.add_option_function<std::string>(
      "--shape",
      [&shape = arguments.request.shape](const std::string& text) { shape = shape_of(text); },
      "shape of the layer, as 64x576 (default: the shape of a row)");
  command.add_option(
      "--layer", arguments.request.layer,
      "name of the layer, the key of its random numbers (default: the first file's)");
  command
      .add_option("--steps-per-epoch", arguments.request.steps_per_epoch,
                  "number of steps in an epoch, for schedules and warm-up (default: all steps are "
                  "in epoch 0)")
      ->check(CLI::NonNegativeNumber);
  command.footer(R"(Example:
  wisp codec --method dgc compression.ratio=0.01 --in runs/a/gradients/rank_*/x.npy --out lab
Writes DIR/mean.npy (the result for the optimizer, a row per step), NAME_R.npy (state NAME
of worker R after the last step), payload_R.bin (its payloads in the last step:
for each round and outlet u32 round, u32 outlet, u64 bytes, and the bytes), and
steps.jsonl.)");
}

}  // namespace wisp
