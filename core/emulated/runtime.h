// What the emulated devices take beside the CUDA runtime's calls: the work of kernels and of
// libraries, and what tests ask of them. Any thread.
#pragma once

#include <functional>
#include <vector>

namespace wisp::emulated {

/// `task` becomes the stream's (a cudaStream_t) next. It uses aliases of device memory (memory.h).
void enqueue(void* stream, std::function<void()> task);

/// For tests: how many devices there are; 2 at first.
void set_devices(int count);
/// For tests: how often cudaEventQuery says "not yet" before it does the work; 2 at first.
void set_polls(int count);
/// For tests: from now on the places in the code are noted that wait for an event or a stream, and
/// the waits of `left_out` do nothing. Returns the places noted since the last call.
std::vector<const void*> watch_waits(const void* left_out = nullptr);
void forget_waits();

}  // namespace wisp::emulated
