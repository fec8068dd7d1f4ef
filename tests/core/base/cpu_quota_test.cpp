#include "core/base/cpu_quota.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

TEST(CpuQuota, IsThatOfTheOwnGroup) {
  const TempDir root;
  root.write("jobs/run/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota("0::/jobs/run\n", root.path()), 1.5);
}

TEST(CpuQuota, IsTheSmallestUpToTheRoot) {
  const TempDir root;
  root.write("jobs/cpu.max", "200000 100000\n");
  root.write("jobs/run/cpu.max", "max 100000\n");
  root.write("jobs/run/step/cpu.max", "800000 100000\n");
  EXPECT_EQ(cpu_quota("0::/jobs/run/step\n", root.path()), 2.0);
  root.write("cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota("0::/jobs/run/step\n", root.path()), 0.5);
}

TEST(CpuQuota, ReadsTheFirstVersionToo) {
  const TempDir root;
  root.write("cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "400000\n");
  root.write("cpu,cpuacct/docker/abc/cpu.cfs_period_us", "200000\n");
  root.write("memory/docker/abc/cpu.cfs_quota_us", "1\n");
  const std::string groups = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n";
  EXPECT_EQ(cpu_quota(groups, root.path()), 2.0);
}

TEST(CpuQuota, AContainersOwnGroupIsTheRoot) {
  const TempDir root;
  root.write("cpu/cpu.cfs_quota_us", "300000\n");
  root.write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota("7:cpuacct,cpu:/docker/of/the/host\n0::/\n", root.path()), 3.0);
}

TEST(CpuQuota, TakesTheLeastOfBothVersions) {
  const TempDir root;
  root.write("cpu/a/cpu.cfs_quota_us", "300000\n");
  root.write("cpu/a/cpu.cfs_period_us", "100000\n");
  root.write("unified/b/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota("7:cpu:/a\n0::/b\n", root.path()), 1.0);
}

TEST(CpuQuota, IsEmptyWithoutALimit) {
  const TempDir root;
  EXPECT_EQ(cpu_quota("0::/jobs\n", root.path()), std::nullopt);
  root.write("jobs/cpu.max", "max 100000\n");
  root.write("cpu/jobs/cpu.cfs_quota_us", "-1\n");
  root.write("cpu/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota("1:cpu:/jobs\n0::/jobs\n", root.path()), std::nullopt);
}

TEST(CpuQuota, PassesOverWhatItCannotRead) {
  const TempDir root;
  for (const char* words : {"", "\n", "0 100000", "100000", "100000 0", "nan 1", "many few"}) {
    root.write("a/cpu.max", words);
    EXPECT_EQ(cpu_quota("0::/a\n", root.path()), std::nullopt) << words;
  }
  for (const char* groups : {"", "0", "0:", ":", "0:cpu", "x\n\n::\n", "0::", "0::a"})
    EXPECT_EQ(cpu_quota(groups, root / "none"), std::nullopt) << groups;
}

}  // namespace
}  // namespace wisp
