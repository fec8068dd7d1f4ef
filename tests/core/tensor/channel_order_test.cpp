#include "core/tensor/channel_order.h"

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace wisp {
namespace {

TEST(ChannelOrder, MovesTheChannels) {
  // two images of 1 x 2 positions and 3 channels; the digits are image, position and channel
  const Tensor last =
      tensor({2, 1, 2, 3}, {0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}, DType::f32);
  const Tensor first = channels_first(last);
  EXPECT_EQ(first.shape(), Shape({2, 3, 1, 2}));
  EXPECT_EQ(values(first),
            (std::vector<double>{0, 10, 1, 11, 2, 12, 100, 110, 101, 111, 102, 112}));
}

TEST(ChannelOrder, ComesBackAsItWas) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor image = random_tensor({3, 4, 5, 7}, 1, dtype);
    const Tensor back = channels_last(channels_first(image));
    EXPECT_EQ(back.shape(), image.shape());
    EXPECT_EQ(values(back), values(image));
  }
}

TEST(ChannelOrder, LeavesOtherRanksAlone) {
  const Tensor matrix = random_tensor({3, 4}, 1);
  EXPECT_EQ(channels_first(matrix).raw(), matrix.raw());
  EXPECT_EQ(channels_last(matrix).raw(), matrix.raw());
  EXPECT_EQ(channels_first(Shape{3, 4}), Shape({3, 4}));
}

}  // namespace
}  // namespace wisp
