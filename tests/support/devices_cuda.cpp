#include "tests/support/devices.h"

namespace wisp {

void want_devices(int) {}

}  // namespace wisp
