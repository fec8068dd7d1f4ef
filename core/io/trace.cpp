#include "core/io/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "core/io/input_file.h"
#include "core/io/json.h"
#include "core/io/output_file.h"

namespace wisp {
namespace {

constexpr int64_t kSpansPerStep = 64;
constexpr int64_t kMaxReserved = 1 << 14;  // spans per lane, about a megabyte

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Ids start at 1 and are unique: Perfetto keeps thread 0 for the idle task, and drops spans if
// lanes of different workers share a number.
int process_id(int worker) { return worker + 1; }
int thread_id(int worker, int lane) { return worker * kLaneCount + lane + 1; }

void put_names(std::string& text, int worker) {
  const auto event = [&](const char* kind, int lane, const std::string& arguments) {
    fmt::format_to(std::back_inserter(text),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}},)"
                   "\n",
                   kind, process_id(worker), thread_id(worker, lane), arguments);
  };
  event("process_name", 0, fmt::format(R"("name":"worker {}")", worker));
  event("process_sort_index", 0, fmt::format(R"("sort_index":{})", worker));
  for (int lane = 0; lane < kLaneCount; ++lane) {
    event("thread_name", lane, fmt::format(R"("name":"{}")", name_of(static_cast<Lane>(lane))));
    event("thread_sort_index", lane, fmt::format(R"("sort_index":{})", lane));
  }
}

void put_span(std::string& text, int worker, int lane, const Trace::Span& span, double shift_us) {
  fmt::format_to(
      std::back_inserter(text),
      R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"step":{})",
      quoted(span.name), process_id(worker), thread_id(worker, lane), span.begin_us + shift_us,
      std::max(0.0, span.end_us - span.begin_us), span.step);
  if (span.bytes != 0) fmt::format_to(std::back_inserter(text), R"(,"bytes":{})", span.bytes);
  text += "}},\n";
}

}  // namespace

const char* name_of(Lane lane) {
  constexpr const char* names[kLaneCount] = {"compute", "encode", "wait", "wire", "decode"};
  return names[static_cast<size_t>(lane)];
}

Trace::Trace(int worker, TraceOptions options) : worker_(worker), options_(options) {
  const int64_t steps = std::clamp<int64_t>(options.steps, 0, kMaxReserved / kSpansPerStep);
  for (auto& lane : lanes_) lane.reserve(static_cast<size_t>(steps * kSpansPerStep));
}

void Trace::span(Lane lane, std::string name, double begin_us, double end_us, int64_t step,
                 int64_t bytes) {
  if (!records(step)) return;
  lanes_[static_cast<size_t>(lane)].push_back({std::move(name), begin_us, end_us, step, bytes});
}

std::string Trace::events(double shift_us) const {
  std::string text;
  put_names(text, worker_);
  for (int lane = 0; lane < kLaneCount; ++lane) {
    for (const Span& span : spans(static_cast<Lane>(lane)))
      put_span(text, worker_, lane, span, shift_us);
  }
  return text;
}

void write_trace(const std::string& path, std::span<const std::string> events,
                 const std::string& remark) {
  std::string text =
      fmt::format(R"({{"displayTimeUnit":"ms","otherData":{{"remark":{}}},"traceEvents":[)"
                  "\n",
                  quoted(remark));
  for (const std::string& worker : events) text += worker;
  if (text.ends_with(",\n")) text.erase(text.size() - 2, 1);
  text += "]}\n";
  write_file(path, text);
}

EarlierSpans read_earlier_spans(const std::string& path, int64_t step, int workers) {
  using Json = nlohmann::ordered_json;
  std::error_code ignored;  // reading the file reports it
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::string text = naming(path, [&] { return read_whole_file(path, kMostJsonBytes); });
  EarlierSpans earlier;
  std::string names;
  try {
    const auto trace = parse_json<Json>(text);
    for (const Json& event : json_part(trace, "traceEvents")) {
      if (json_at<std::string>(event, "ph") != "X") {
        if (json_at<int64_t>(event, "pid") > workers) names += event.dump() + ",\n";
      } else if (json_at<int64_t>(json_part(event, "args"), "step") < step) {
        earlier.events += event.dump() + ",\n";
        earlier.end_us =
            std::max(earlier.end_us, json_at<double>(event, "ts") + json_at<double>(event, "dur"));
      }
    }
  } catch (const Error&) {
    return {};  // not a trace of this program: it will be overwritten
  }
  if (!std::isfinite(earlier.end_us)) return {};
  if (!earlier.events.empty()) earlier.events = names + earlier.events;
  return earlier;
}

}  // namespace wisp
