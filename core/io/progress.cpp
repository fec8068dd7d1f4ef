#include "core/io/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

constexpr int kLeastBar = 10, kMostBar = 40;
constexpr const char* kEraseLine = "\r\x1b[K";

std::string epoch_text(const ProgressReport& p) {
  return fmt::format("epoch {}/{}", p.epoch, p.epochs);
}

std::string numbers_text(const ProgressReport& p, const std::string& gap) {
  std::string text = fmt::format("{}/{}", p.step, p.steps);
  if (!std::isnan(p.loss)) text += gap + fmt::format("loss {:.4f}", p.loss);
  if (!p.metric.empty()) text += gap + p.metric;
  if (p.rate > 0.0) text += gap + fmt::format("{:.0f} {}/s", p.rate, p.unit);
  if (p.reduction >= 1.05) text += gap + fmt::format("{:.1f}x less", p.reduction);
  if (!std::isnan(p.left_s)) text += gap + fmt::format("{} left", duration_text(p.left_s));
  return text;
}

std::string bar(double done, int width) {
  const int filled = static_cast<int>(std::clamp(done, 0.0, 1.0) * width);
  std::string text(static_cast<size_t>(filled), '=');
  if (filled < width) text += '>';
  text.resize(static_cast<size_t>(width), ' ');
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::min(std::max(seconds, 0.0), 1e15) + 0.5);
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_text(const ProgressReport& progress) {
  return epoch_text(progress) + "  " + numbers_text(progress, "  ");
}

std::string progress_bar(const ProgressReport& progress, int width) {
  const std::string epoch = epoch_text(progress), numbers = numbers_text(progress, "  ");
  const int room = width - static_cast<int>(epoch.size() + numbers.size() + 4);  // " [" and "] "
  std::string text = epoch + "  " + numbers;
  if (room >= kLeastBar) {
    const double done = static_cast<double>(progress.step) /
                        static_cast<double>(std::max<int64_t>(1, progress.steps));
    text = fmt::format("{} [{}] {}", epoch, bar(done, std::min(room, kMostBar)), numbers);
  } else if (static_cast<int>(text.size()) > width) {
    text = epoch + " " + numbers_text(progress, " ");
  }
  return text.substr(0, static_cast<size_t>(std::max(width, 0)));
}

Terminal terminal_of(std::FILE* out, const std::string& kind) {
  Terminal terminal;
  terminal.interactive = !kind.empty() && kind != "dumb" && isatty(fileno(out)) == 1;
  winsize size{};
  if (terminal.interactive && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

ProgressLine::ProgressLine(std::FILE* out, Terminal terminal, int64_t interval)
    : out_(out), terminal_(terminal), interval_(interval) {
  WISP_CHECK(interval >= 1, "progress: a line every ", interval, " steps, expected 1 or more");
}

void ProgressLine::update(const ProgressReport& progress) {
  if (terminal_.interactive) {
    // One column stays free: a full line would wrap.
    redraw(out_, kEraseLine + visible(progress_bar(progress, terminal_.width - 1)));
    drawn_ = true;
  } else if (progress.step % interval_ == 0 || progress.step == progress.steps) {
    redraw(out_, visible(progress_text(progress)) + "\n");
  }
}

void ProgressLine::say(const std::string& text) {
  clear();
  redraw(out_, visible_lines(text) + "\n");
}

void ProgressLine::clear() {
  if (drawn_) redraw(out_, kEraseLine);
  drawn_ = false;
}

void ProgressLine::finish() {
  if (drawn_) redraw(out_, "\n");
  drawn_ = false;
}

}  // namespace wisp
