// The rig that tests drive a method's workers with, on the reference backend.
#pragma once

#include "distributed/bench/rehearsal.h"

namespace wisp {

using MethodRig = Rehearsal;

}  // namespace wisp
