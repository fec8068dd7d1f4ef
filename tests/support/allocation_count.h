// How often this thread has asked the heap for memory. A program with allocation_count.cpp in it
// counts every operator new.
#pragma once

#include <cstdint>

namespace wisp {

int64_t allocation_count();

}  // namespace wisp
