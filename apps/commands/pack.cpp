#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/stop_signals.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"
#include "data/photos/photo_layout.h"
#include "data/photos/photo_packing.h"
#include "data/photos/photo_shards.h"

namespace wisp {
namespace {

constexpr size_t kMostDamaged = 5;  // damaged photos that are listed

struct PackArguments {
  std::string photos, out;
  PackOptions options;
};

void print_packed(const PackedPhotos& packed, const std::string& out) {
  write_progress(fmt::format("{}: {} photos, {:.1f} MB\n", visible(out), packed.photos,
                             1e-6 * static_cast<double>(packed.bytes)));
  if (packed.damaged.empty()) return;
  write_progress(
      fmt::format("{} photos are damaged and were packed as they are:\n", packed.damaged.size()));
  for (size_t i = 0; i < std::min(packed.damaged.size(), kMostDamaged); ++i)
    write_progress(fmt::format("  {}\n", visible(packed.damaged[i])));
}

/// Packs the photos of a folder, unless they are packed already. Throws Error for other shards.
void pack(const FoundPhotos& found, const std::vector<std::string>& classes, const std::string& out,
          const PackOptions& options) {
  if (has_shards(out)) {
    const std::string origin = packing_origin(*found.photos, options),
                      there = origin_of_shards(out);
    WISP_CHECK(origin == there, out, ": holds shards of ", there, ", asked for are ", origin,
               "; pack into another folder, or remove this one");
    write_progress(fmt::format("{}: holds photos of these names already\n", visible(out)));
    return;
  }
  for (const std::string& notice : found.notices) write_progress(visible(notice) + "\n");
  const bool live = isatty(STDOUT_FILENO) == 1;
  const PackedPhotos packed =
      pack_photos(*found.photos, classes, out, options, [&](int64_t photos) {
        if (live) redraw(stdout, fmt::format("\r{} of {} photos\r", photos, found.photos->count()));
        return StopSignals::received() == 0;
      });
  if (packed.stopped) {
    write_progress(fmt::format("stopped; nothing was written to {}\n", visible(out)));
    throw ExitStatus{ExitStatus::kBySignal + StopSignals::received()};
  }
  print_packed(packed, out);
}

void run_pack(const PackArguments& arguments) {
  const PackOptions& options = arguments.options;
  WISP_CHECK(!options.raw || options.side > 0,
             "pack: --raw needs --side, the shorter side of the photos in pixels");
  const StopSignals signals;
  const PhotoLayout layout = find_layout(arguments.photos);
  const std::vector<std::string> classes = classes_of(layout.train);
  for (const std::string& notice : layout.notices) write_progress(visible(notice) + "\n");
  struct Part {
    FoundPhotos photos;
    const char* folder;  // in `out`, as find_layout() names it
  };
  std::vector<Part> parts = {{find_photos({layout.train}, classes), "/train"}};
  const bool validates = !layout.validation.path.empty();
  if (validates) parts.push_back({find_photos(layout.validation, classes), "/val"});
  if (!layout.test.path.empty())
    parts.push_back({find_photos(layout.test, classes), validates ? "/test" : "/val"});
  if (parts.size() == 1) parts[0].folder = "";
  // the training set last: without it, a folder is not taken for a data set
  std::ranges::reverse(parts);
  for (const auto& [photos, folder] : parts) pack(photos, classes, arguments.out + folder, options);
}

}  // namespace

void add_pack(CLI::App& program) {
  const auto [command, arguments] = add_command<PackArguments>(
      program, "pack", "pack photos in class folders into a few large files", run_pack);
  PackOptions& options = arguments.options;
  command
      .add_option("photos", arguments.photos,
                  "folder with a folder for each class, or with train, val and test of these")
      ->required()
      ->check(CLI::ExistingDirectory);
  command.add_option("out", arguments.out, "folder of the shards, to give as data.path")
      ->required();
  add_number(command, "--side", options.side,
             "shorter side in pixels to which larger photos are scaled; 0 keeps the files' bytes",
             CLI::NonNegativeNumber);
  add_number(command, "--quality", options.quality, "JPEG quality of scaled photos",
             CLI::Range(1, 100));
  command.add_flag("--raw", options.raw, "store pixels without compression; needs --side");
  add_number(command, "--jobs", options.jobs, "number of threads", CLI::Range(1, kMostThreads));
  command.footer(R"(Examples:
  wisp pack my_photos shards --side 512 --jobs 2
  wisp train apps/configs/photos_resnet18.toml data.path=shards
Photos are packed in a random order. Files that are smaller keep their bytes, and so do damaged ones, which are
named if they had to be scaled. A stopped command leaves no part of a set; the same command goes on with what
is missing.)");
}

}  // namespace wisp
