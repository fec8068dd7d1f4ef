// Fuzz target for trace.json of a run directory, as a report reads it, and as a resumed run does.
#include "apps/report/page/lane_chart.h"
#include "apps/run/run_record.h"
#include "core/io/trace.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// A run directory without a trace.
class EmptyRun {
 public:
  EmptyRun() {
    dir_.write("config.toml", "");
    dir_.write("metrics.jsonl", "");
  }
  std::string with_trace(std::string_view text) const {
    dir_.write("trace.json", std::string(text));
    return dir_.path();
  }

 private:
  const TempDir dir_;
};

}  // namespace

void fuzz(std::string_view input) {
  static const EmptyRun empty;
  const std::string run = empty.with_trace(input);
  try {
    lane_chart(RunRecord::read(run).spans);
  } catch (const Error&) {
  }
  const EarlierSpans earlier = read_earlier_spans(run + "/trace.json", 3, 2);
  write_trace(run + "/trace.json", std::vector{earlier.events});
  if (read_earlier_spans(run + "/trace.json", 3, 2).events != earlier.events)
    throw Finding("trace: spans that were kept are not kept again");
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  std::vector<std::string> events;
  for (int worker = 0; worker < 2; ++worker) {
    Trace trace(worker, {.first_step = 0, .steps = 5});
    for (int step = 0; step < 5; ++step) {
      trace.span(Lane::compute, "forward", step, step + 0.5, step);
      trace.span(Lane::wire, "bucket \"1\"", step, step + 0.25, step, 8);
    }
    events.push_back(trace.events(0.5));
  }
  write_trace(dir / "full", events, "a remark");
  write_trace(dir / "empty", {});
  return {read_text(dir / "full"), read_text(dir / "empty")};
}

/// Includes the drawing and the configuration of the run.
int64_t fuzz_memory(int64_t input_bytes) { return (1 << 18) + 150 * input_bytes; }

}  // namespace wisp
