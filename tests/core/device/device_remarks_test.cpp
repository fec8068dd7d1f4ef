#include "core/device/device_remarks.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

TEST(DeviceRemarks, AreGivenOnceEach) {
  take_device_remarks();
  remark("a");
  remark("b");
  remark("a");
  EXPECT_EQ(take_device_remarks(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(take_device_remarks().empty());
  remark("b");
  remark("c");
  EXPECT_EQ(take_device_remarks(), (std::vector<std::string>{"c"}));
}

}  // namespace
}  // namespace wisp
