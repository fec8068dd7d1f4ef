// What is counted is what a network device carries.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/command.h"

namespace wisp {
namespace {

struct Traffic {
  double counted = 0.0, carried = 0.0, messages = 0.0;
};

Traffic measure(int message) {
  const CommandResult result = run_command("unshare -n sh -c 'ip link set lo up && " WISP_MPIRUN
                                           " -n 4 --mca btl tcp,self --mca oob_tcp_if_include lo "
                                           "--mca btl_tcp_if_include lo " WISP_WIRE_BYTES " " +
                                           std::to_string(message) + "'");
  Traffic traffic;
  std::istringstream(result.output) >> traffic.counted >> traffic.carried >> traffic.messages;
  EXPECT_GT(traffic.messages, 0.0) << result.output;
  return traffic;
}

TEST(WireBytes, TheLoopbackDeviceAgrees) {
  if (run_command("unshare -n ip link set lo up").status != 0)
    GTEST_SKIP() << "no network of one's own here (unshare -n, ip)";
  for (const int message : {64 << 10, 1 << 20}) {
    const Traffic traffic = measure(message);
    EXPECT_NEAR(traffic.carried / traffic.counted, 1.0, 0.01) << message << " bytes a message";
  }
  const Traffic small = measure(1000);
  EXPECT_GE(small.carried, small.counted);
  EXPECT_LE(small.carried, small.counted + 200.0 * small.messages);
}

}  // namespace
}  // namespace wisp
