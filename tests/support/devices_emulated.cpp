#include "core/emulated/runtime.h"
#include "tests/support/devices.h"

namespace wisp {

void want_devices(int count) { emulated::set_devices(count); }

}  // namespace wisp
