// The number of heap allocations of the calling thread. The program must contain
// allocation_count.cpp, which counts every operator new.
#pragma once

#include <cstdint>

namespace wisp {

int64_t allocation_count();

}  // namespace wisp
