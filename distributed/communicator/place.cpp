#include "distributed/communicator/place.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

namespace wisp {

Place Place::own() {
  Place place;
  gethostname(place.host.data(), place.host.size() - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id").get(place.boot.data(), place.boot.size());
  struct stat name_space {};
  if (stat("/proc/self/ns/pid", &name_space) == 0) place.process_numbers = name_space.st_ino;
  place.process = getpid();
  cpu_set_t cores;
  static_assert(sizeof cores == sizeof place.cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    std::memcpy(place.cores.data(), &cores, sizeof cores);
  return place;
}

bool Place::deserted(const Place& seen_from) const {
  if (boot != seen_from.boot || process_numbers != seen_from.process_numbers) return false;
  return kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

}  // namespace wisp
