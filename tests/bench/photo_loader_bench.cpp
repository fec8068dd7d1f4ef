// Times the loader on photos in training: read, decoded, cropped, mirrored, normalised, in batches
// of 64. Prints images per second for each epoch; the first one warms up.
// Usage: photo_loader_bench DATA [threads [epochs]]
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/loader.h"

namespace wisp {
namespace {

void bench(const std::string& path, int threads, int epochs) {
  const std::vector<std::string> overrides{"data.name=photos", "data.path=\"" + path + "\""};
  Config config = Config::from_text("", "bench", overrides);
  const Splits splits = make_data_source(config)->open(DType::f32);
  Loader loader(*splits.train, {.batch = 64}, {.threads = threads});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    int64_t images = 0;
    loader.start_epoch(epoch);
    while (const auto batch = loader.next()) images += batch->count;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    fmt::print("{:.0f}\n", static_cast<double>(images) / seconds.count());
  }
}

}  // namespace
}  // namespace wisp

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: photo_loader_bench DATA [threads [epochs]]\n");
    return 2;
  }
  try {
    wisp::bench(argv[1], argc > 2 ? std::atoi(argv[2]) : 2, argc > 3 ? std::atoi(argv[3]) : 4);
  } catch (const std::exception& error) {
    fmt::print(stderr, "photo_loader_bench: {}\n", error.what());
    return 1;
  }
}
