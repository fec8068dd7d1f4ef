// Tests that a rank that fails in any collective ends all others, and that they name it. Ranks are
// threads, then processes.
#include <gtest/gtest.h>

#include "distributed/communicator/collective.h"
#include "tests/support/command.h"

namespace wisp {
namespace {

constexpr int kKinds = static_cast<int>(Call::Kind::barrier) + 1;
constexpr double kLimitS = 10.0;  // promised limit, on a busy machine too

struct Case {
  const char* fault;
  const char* threads_say;
  const char* processes_say;
};

class Fault : public testing::TestWithParam<Case> {};

void expect_named(const std::string& launcher, const std::string& fault, const std::string& words) {
  for (int kind = 0; kind < kKinds; ++kind) {
    const std::string command = launcher + " " WISP_SOAK " 100000 " + fault;
    const CommandResult result = run_command(command + " " + std::to_string(kind));
    EXPECT_NE(result.status, 0) << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos)
        << command << " " << kind << " should say " << words << ", but says: " << result.output;
    EXPECT_LT(result.seconds, kLimitS) << command << " " << kind << ": " << result.output;
  }
}

TEST_P(Fault, EndsAllThreads) { expect_named("", GetParam().fault, GetParam().threads_say); }

#ifdef WISP_MPIRUN
TEST_P(Fault, EndsAllProcesses) {
  expect_named(WISP_MPIRUN " -n 4", GetParam().fault, GetParam().processes_say);
}
#endif

void expect_hook_named(const std::string& launcher) {
  const CommandResult result = run_command(launcher + " " WISP_FAILING_HOOK);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("rank 2: wheel came off"), std::string::npos) << result.output;
  EXPECT_LT(result.seconds, kLimitS);
}

TEST(FaultInBackward, EndsAllThreads) { expect_hook_named(""); }
#ifdef WISP_MPIRUN
TEST(FaultInBackward, EndsAllProcesses) { expect_hook_named(WISP_MPIRUN " -n 4"); }
#endif

#ifdef WISP_MPIRUN
/// Threads: CommunicatorGroups.ATimeoutNamesOnlyWhoKeepsAllWaiting.
TEST(FaultInAGroup, IsToldByProcessesThatWaitInOthers) {
  for (const Call::Kind kind : {Call::Kind::all_reduce, Call::Kind::barrier}) {
    const CommandResult result =
        run_command(concat(WISP_MPIRUN " -n 4 " WISP_SOAK " 1 absent ", static_cast<int>(kind)));
    EXPECT_NE(result.status, 0) << result.output;
    EXPECT_NE(result.output.find(": waited 3 s for rank 2, which has not come"), std::string::npos)
        << result.output;
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(
    Soak, Fault,
    testing::Values(Case{"die", "rank 2: died", "rank 2: its process ("},
                    Case{"stall", "waited 0.5 s for rank 2", "waited 0.5 s for rank 2"},
                    Case{"throw", "rank 2: wheel came off", "rank 2: wheel came off"},
                    Case{"group", "rank 2: wheel came off", "rank 2: wheel came off"},
                    Case{"differ", "rank 2: calls ", "rank 2: calls "}),
    [](const auto& parameter) { return std::string(parameter.param.fault); });

}  // namespace
}  // namespace wisp
