// The spans in a trace.json of the steps before a run was resumed. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace wisp {

struct EarlierSpans {
  std::string events;   // as text for write_trace()
  double end_us = 0.0;  // of the last one; 0 if there is none
};

/// The spans of steps before `step`, with the names of workers from `workers` on, of whom the
/// resumed run has none. Nothing if there is no such file, or another program's.
EarlierSpans read_earlier_spans(const std::string& path, int64_t step, int workers);

}  // namespace wisp
