#include "core/io/output_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/io/visible_text.h"

namespace wisp {
namespace {

/// Whether this text and all before it has reached the system; else errno has the reason, or is 0.
bool put(std::FILE* stream, std::string_view text) {
  errno = 0;
  const bool taken = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  return std::fflush(stream) == 0 && taken && std::ferror(stream) == 0;
}

std::string reason(int error) { return error == 0 ? "" : std::string(": ") + std::strerror(error); }

/// Lets a stream write to /dev/null, with what it still holds.
void abandon(std::FILE* stream) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, fileno(stream));  // no moment without: another file would take the number
  close(nowhere);
  std::fflush(stream);
  std::clearerr(stream);
}

}  // namespace

void write_out(std::string_view text) {
  if (put(stdout, visible_lines(text))) return;
  const std::string what = "the output could not be written" + reason(errno);
  if (errno == EPIPE) throw ReaderGone(what);
  throw Error(what);
}

void write_progress(std::string_view text) { redraw(stdout, visible_lines(text)); }

void redraw(std::FILE* stream, std::string_view text) {
  if (put(stream, text)) return;
  const std::string why = reason(errno);
  abandon(stream);
  write_notice("the log cannot be written" + why + "; the work goes on without it");
}

void write_notice(std::string_view text) {
  std::string lines = "wisp: ";
  for (size_t at = 0; at < text.size(); ++at) {
    const bool begins = at > 0 && text[at - 1] == '\n';
    if (begins && text[at] != ' ') lines += "  ";
    lines += text[at];
  }
  write_usage(lines + "\n");
}

void write_usage(std::string_view text) {
  put(stderr, visible_lines(text));
  std::clearerr(stderr);
}

}  // namespace wisp
