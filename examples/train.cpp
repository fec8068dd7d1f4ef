// Training from a program of one's own.
#include <cstdio>

#include "apps/train/trainer.h"

int main() {
  const wisp::Config config = wisp::Config::load("train.toml", {});
  const auto summary = wisp::train(config, {.out = "runs/example"});
  std::printf("%.0f bytes sent in a step, %.0f times fewer than dense\n", summary->bytes_sent,
              summary->reduction_sent);
}
