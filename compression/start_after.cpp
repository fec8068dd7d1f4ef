#include "compression/start_after.h"

namespace wisp {

int64_t bind_start_after(Config& config, int64_t published) {
  int64_t updates = published;
  config.bind("compression.start_after", updates,
              "number of dense updates before the first compressed one");
  return updates;
}

void check_start_after(int64_t updates, const Config& places) {
  places.expect(updates >= 0, "compression.start_after", updates, "0 or more");
}

}  // namespace wisp
