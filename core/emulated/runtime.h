// The interface of the emulated devices besides the CUDA runtime's calls: the work of kernels and
// libraries, and controls for tests. Any thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>

namespace wisp::emulated {

struct Queue;

/// Appends `task` to the stream, a cudaStream_t. The task uses aliases of device memory (memory.h).
void enqueue(void* stream, std::function<void()> task);
/// The queue of a stream.
const std::shared_ptr<Queue>& queue_of(void* stream);

/// Sets the number of devices, for tests; initially 2.
void set_devices(int count);
/// Sets how often cudaEventQuery returns "not ready" before it does the work, for tests; initially
/// 2.
void set_polls(int count);

/// The place in the code at which a stream is told to wait for an event: return addresses,
/// innermost first.
using WaitPlace = std::array<void*, 3>;
/// Notes the places of waits from now on, for tests; waits at `left_out` do nothing. Returns the
/// places noted since the last call.
std::set<WaitPlace> watch_waits(const WaitPlace& left_out = {});
void forget_waits();

}  // namespace wisp::emulated
