#include "core/base/shared_cores.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/clock.h"

namespace wisp {
namespace {

constexpr double kNoticeable = 0.3;  // cores: background work of a system takes less

std::vector<int> cores_of_process() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double seconds_of_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cores) {
  std::istringstream lines(stat);
  size_t found = 0;
  double ticks = 0.0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    // fields as in man 5 proc; guests' times are included in user and nice
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    if (!(words >> name) || !name.starts_with("cpu")) continue;
    int core = -1;
    std::from_chars(name.data() + 3, name.data() + name.size(), core);
    if (!std::binary_search(cores.begin(), cores.end(), core)) continue;
    if (!(words >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return {};
    ticks += user + nice + system + irq + softirq + steal;
    ++found;
  }
  if (found == 0 || found != cores.size()) return {};
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

SharedCores::SharedCores() : cores_(cores_of_process()), before_(read()) {}

std::optional<SharedCores::Reading> SharedCores::read() const {
  std::ifstream file("/proc/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::optional<double> busy = busy_seconds(text, cores_);
  if (!busy) return {};
  return Reading{now_us(), *busy - seconds_of_process()};
}

double SharedCores::taken_by_others() {
  const std::optional<Reading> now = read();
  if (!now || !before_ || now->at_us <= before_->at_us) return 0.0;
  const double elapsed_s = (now->at_us - before_->at_us) * 1e-6;
  const double others_s = now->others_s - before_->others_s;
  before_ = now;
  return std::clamp(others_s / elapsed_s, 0.0, static_cast<double>(cores()));
}

std::string shared_cores_advice(double others, int cores, int workers, int threads) {
  if (threads < 2 || others < kNoticeable || others + workers * threads <= cores) return "";
  const int room = static_cast<int>((cores - others) / workers);
  return fmt::format(
      "other programs take {:.1f} of {} cores, so a worker's threads wait for each other: set "
      "OMP_WAIT_POLICY=passive in the environment, or threads={}",
      others, cores, std::clamp(room, 1, threads - 1));
}

}  // namespace wisp
