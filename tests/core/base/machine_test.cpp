#include "core/base/machine.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(Machine, ReadsTheNameOfTheFirstCpu) {
  const TempDir dir;
  const std::string file = dir.write(
      "cpuinfo", "processor\t: 0\nmodel\t\t: 17\nmodel name\t: A CPU: 2.0 GHz \nmodel name\t: B\n");
  EXPECT_EQ(cpu_model(file), "A CPU: 2.0 GHz");
}

TEST(Machine, SaysSoWhereTheCpuHasNoName) {
  const TempDir dir;
  EXPECT_EQ(cpu_model(dir / "missing"), "unknown CPU");
  EXPECT_EQ(cpu_model(dir.write("other", "processor\t: 0\nCPU part\t: 0xd0c\n")), "unknown CPU");
  EXPECT_EQ(cpu_model(dir.write("empty", "model name\t: \n")), "unknown CPU");
  EXPECT_EQ(cpu_model(dir.write("odd", "model name\n")), "unknown CPU");
}

TEST(Machine, NamesItsCpuAndLibrary) {
  const std::string text = machine();
  EXPECT_EQ(text.find(cpu_model() + ", glibc 2."), 0u) << text;
}

}  // namespace
}  // namespace wisp
