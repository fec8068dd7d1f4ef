// What the emulated devices take beside the CUDA runtime's calls: the work of kernels and of
// libraries, and what tests ask of them. Any thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>

namespace wisp::emulated {

struct Queue;

/// `task` becomes the stream's (a cudaStream_t) next. It uses aliases of device memory (memory.h).
void enqueue(void* stream, std::function<void()> task);
/// What the stream is.
const std::shared_ptr<Queue>& queue_of(void* stream);

/// For tests: how many devices there are; 2 at first.
void set_devices(int count);
/// For tests: how often cudaEventQuery says "not yet" before it does the work; 2 at first.
void set_polls(int count);

/// Where in the code a stream is asked to wait for an event: return addresses, innermost first.
using WaitPlace = std::array<void*, 3>;
/// For tests: from now on the places are noted, and the waits of `left_out` do nothing. Returns the
/// places noted since the last call.
std::set<WaitPlace> watch_waits(const WaitPlace& left_out = {});
void forget_waits();

}  // namespace wisp::emulated
