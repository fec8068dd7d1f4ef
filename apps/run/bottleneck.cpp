#include "apps/run/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/setup/replica.h"

namespace wisp {
namespace {

std::string advice(const Bottleneck& found, const StepTimes& times) {
  switch (found.part) {
    case Part::loader:
      return "more data.threads would help";
    case Part::compute:
      return fmt::format("a faster exchange could save {:.0f} % at most",
                         100.0 * times.wait_ms / std::max(times.step_ms(), 1e-9));
    case Part::encode:
    case Part::decode:
      return "more comm_threads or a cheaper compression.method would help";
    case Part::wire:
      if (found.factor == 0.0) return "a faster link or fewer bytes would help";
      return fmt::format(
          "a faster link or fewer bytes would help, about {:.2g}x fewer would hide behind compute",
          found.factor);
    case Part::workers:
      return "the workers wait for each other, not for bytes";
  }
  return "";
}

}  // namespace

StepTimes times_of(const StepReport& report) {
  return {.loader_ms = report.loader_ms,
          .compute_ms = report.compute_ms,
          .wait_ms = report.cost.wait_ms,
          .encode_ms = report.cost.encode_ms,
          .wire_ms = report.cost.wire_ms,
          .decode_ms = report.cost.decode_ms};
}

const char* name_of(Part part) {
  constexpr const char* names[] = {"loader", "compute", "encode", "wire", "decode", "workers"};
  return names[static_cast<size_t>(part)];
}

Bottleneck find_bottleneck(const StepTimes& t) {
  const double step = t.step_ms();
  if (!(step > 0.0)) return {};
  const double exchange = t.encode_ms + t.wire_ms + t.decode_ms;
  const std::pair<Part, double> gains[] = {
      {Part::compute, std::clamp(t.compute_ms + t.wait_ms - exchange, 0.0, t.compute_ms)},
      {Part::loader, t.loader_ms},
      {Part::wire, std::min(t.wire_ms, t.wait_ms)},
      {Part::encode, std::min(t.encode_ms, t.wait_ms)},
      {Part::decode, std::min(t.decode_ms, t.wait_ms)},
      {Part::workers, std::max(t.wait_ms - exchange, 0.0)}};
  const auto [part, most] = std::ranges::max(gains, {}, &std::pair<Part, double>::second);
  Bottleneck found{part, most / step, 0.0};
  const double hidden = t.wire_ms - t.wait_ms;
  if (found.part == Part::wire && hidden > 0.0) found.factor = t.wire_ms / hidden;
  return found;
}

std::string bottleneck_line(const StepTimes& times) {
  const Bottleneck found = find_bottleneck(times);
  return fmt::format("bottleneck: {} (up to {:.0f} % of a step); {}", name_of(found.part),
                     100.0 * found.share, advice(found, times));
}

}  // namespace wisp
