// Tests that the counted bytes are those that a network device carries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "tests/support/command.h"

namespace wisp {
namespace {

struct Traffic {
  double counted = 0.0, carried = 0.0, messages = 0.0;
};

/// The output of the ranks, which run in a separate network namespace.
std::string output_of(int ranks, const std::string& what) {
  const CommandResult result = run_command_apart(
      "unshare -n sh -c 'ip link set lo up && " WISP_MPIRUN " -n " + std::to_string(ranks) +
      " --mca btl tcp,self --mca oob_tcp_if_include lo "
      "--mca btl_tcp_if_include lo " WISP_WIRE_BYTES " " +
      what + "'");
  EXPECT_EQ(result.status, 0) << result.errors;
  return result.output;
}

Traffic measure(int message) {
  const std::string output = output_of(4, std::to_string(message));
  Traffic traffic;
  std::istringstream(output) >> traffic.counted >> traffic.carried >> traffic.messages;
  EXPECT_GT(traffic.messages, 0.0) << output;
  return traffic;
}

class WireBytes : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command("unshare -n ip link set lo up").status != 0)
      GTEST_SKIP() << "no network of one's own here (unshare -n, ip)";
  }
};

TEST_F(WireBytes, TheLoopbackDeviceAgrees) {
  for (const int message : {64 << 10, 1 << 20}) {
    const Traffic traffic = measure(message);
    EXPECT_NEAR(traffic.carried / traffic.counted, 1.0, 0.01) << message << " bytes a message";
  }
  const Traffic small = measure(1000);
  EXPECT_GE(small.carried, small.counted);
  EXPECT_LE(small.carried, small.counted + 200.0 * small.messages);
}

/// At least one step of three must agree, as a busy system sends smaller packets.
TEST_F(WireBytes, TheLoopbackDeviceAgreesWithEveryMethod) {
  constexpr int kRanks = 3;
  std::map<std::string, std::map<int, Traffic>> traffic;
  std::istringstream lines(output_of(kRanks, "methods"));
  std::string method;
  int step = 0;
  for (Traffic rank; lines >> method >> step >> rank.counted >> rank.carried;) {
    traffic[method][step].counted += rank.counted;
    traffic[method][step].carried += rank.carried;
  }
  EXPECT_GT(traffic.size(), 20u);
  for (const auto& [name, steps] : traffic) {
    double apart = 1.0;
    for (const auto& [number, sums] : steps) {
      EXPECT_GE(sums.counted, 64.0 * 1024.0 * kRanks * (kRanks - 1)) << name;
      apart = std::min(apart, std::abs(sums.carried / sums.counted - 1.0));
    }
    EXPECT_LE(apart, 0.01) << name;
  }
}

}  // namespace
}  // namespace wisp
