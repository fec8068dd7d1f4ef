#include "apps/commands/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"

namespace wisp {

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one
    const int opened = open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    WISP_CHECK(opened == stream, "cannot open /dev/null: ", std::strerror(errno));
  }
}

void flush_output() {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  WISP_CHECK(!failed, "the output could not be written",
             errno ? concat(": ", std::strerror(errno)) : "");
}

}  // namespace wisp
