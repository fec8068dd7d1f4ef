#include "core/base/cpu_quota.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace wisp {
namespace {

/// quota / period; empty where a word is no number, such as "max", or means no limit (-1).
std::optional<double> cores_of(const std::string& words) {
  std::istringstream in(words);
  double quota_us = 0.0, period_us = 0.0;
  if (!(in >> quota_us >> period_us) || !(quota_us > 0.0) || !(period_us > 0.0)) return {};
  return quota_us / period_us;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> quota_in(const std::string& folder) {
  if (const auto cores = cores_of(first_line(folder + "/cpu.max"))) return cores;
  return cores_of(first_line(folder + "/cpu.cfs_quota_us") + " " +
                  first_line(folder + "/cpu.cfs_period_us"));
}

/// The places where hierarchies with this list of controllers are mounted: v2 has no list.
std::vector<std::string> mounts(const std::string& controllers, const std::string& root) {
  if (controllers.empty()) return {root, root + "/unified"};
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return {root + "/cpu", root + "/" + controllers};
  return {};
}

}  // namespace

std::optional<double> cpu_quota(const std::string& groups, const std::string& root) {
  std::optional<double> least;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    for (const std::string& mount : mounts(line.substr(first + 1, second - first - 1), root)) {
      // a container may see the path of its host, and its own group as the root
      for (std::string group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
        const std::optional<double> cores = quota_in(mount + group);
        if (cores && (!least || *cores < *least)) least = cores;
        if (group.find('/') == std::string::npos) break;
      }
    }
  }
  return least;
}

std::optional<double> cpu_quota() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups(std::istreambuf_iterator<char>(file), {});
  return cpu_quota(groups, "/sys/fs/cgroup");
}

}  // namespace wisp
