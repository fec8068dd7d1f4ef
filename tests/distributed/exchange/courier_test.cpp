#include "distributed/exchange/courier.h"

#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "core/copy.h"
#include "tests/support/devices.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// A collective that is ready at the look of that number, and asks for the next look at once, as
/// one that begins when a device's stream has come to it.
class ReadyAtLook final : public Pending {
 public:
  explicit ReadyAtLook(int look) : left_(look) {}
  bool ready() override { return --left_ <= 0; }
  double ready_at_us() override { return 0.0; }
  Transfer wait() override { return {}; }

 private:
  int left_;
};

struct Rig {
  explicit Rig(Device device = {}) : context({.device = device}) {}

  TestContext context;
  Inbox inbox;
  Trace trace{0, {}};
  Courier courier{inbox, trace, context.stream};
};

class DeviceCourier : public DeviceTest {};

TEST_F(DeviceCourier, PausesBetweenLooksThatAskTheStream) {
  constexpr int kPauses = 50;
  Rig rig(first_device());
  ReadyAtLook pending(1 + Courier::kImmediateAsks + kPauses);
  const double begin = now_us();
  rig.courier.await(pending);
  EXPECT_GE(now_us() - begin, kPauses * Courier::kPauseUs);
}

TEST_F(DeviceCourier, PausesWhileCallbacksAreOutstanding) {
  constexpr int kPauses = 50;
  Rig rig(first_device());
  StreamWatch& watch = rig.courier.watch();
  watch.then(watch.mark(), [](const StreamWatch::Span&) {});
  const double begin = now_us();
  for (int turn = 0; turn < Courier::kImmediateAsks + kPauses; ++turn)
    rig.courier.wait(rig.inbox.events());
  EXPECT_GE(now_us() - begin, kPauses * Courier::kPauseUs);
  rig.courier.settle();
}

TEST_F(DeviceCourier, SettlesWhenTheStreamIsDone) {
  Rig rig(first_device());
  const Tensor x = rig.context.context.empty({1000}, DType::f32);
  clear(rig.context.stream, x);
  bool called = false;
  rig.courier.watch().then(rig.courier.watch().mark(),
                           [&](const StreamWatch::Span&) { called = true; });
  rig.courier.settle();
  EXPECT_TRUE(called);
  EXPECT_TRUE(rig.courier.watch().idle());
}

/// On the CPU a collective itself says when to look again.
TEST(Courier, LooksWhenACollectiveOnTheCpuSaysSo) {
  Rig rig;
  ReadyAtLook pending(100);
  rig.courier.await(pending);
  rig.courier.settle();
  EXPECT_TRUE(rig.courier.watch().idle());
}

}  // namespace
}  // namespace wisp
