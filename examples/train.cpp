// Trains from your own program.
#include <cstdio>
#include <exception>

#include "apps/train/trainer.h"

int main() try {
  const wisp::Config config = wisp::Config::load("train.toml", {});
  const auto summary = wisp::train(config, {.out = "runs/example"});
  std::printf("%.0f bytes sent in a step, %.0f times fewer than dense\n", summary->bytes_sent,
              summary->reduction_sent);
} catch (const std::exception& error) {  // the configuration is wrong, the run is there already
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
