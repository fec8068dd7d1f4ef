#include "core/emulated/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/copy.h"
#include "core/emulated/queues.h"
#include "core/loops/parallel.h"
#include "tests/support/devices.h"
#include "tests/support/error_of.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

using emulated::Memory;

struct Store {
  float* into;
  float value;
  void operator()() const { *into = value; }
};

TEST(EmulatedMemory, FaultsWhereTheHostTouchesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TestContext rig({.device = first_device()});
  const Tensor x = rig.context.zeros({4}, DType::f32);
  EXPECT_DEATH(*x.data<float>() = 1.0f, "the host touched memory of the device");
  EXPECT_DEATH(std::memset(x.raw(), 0, 4), "the host touched memory of the device");
}

TEST(EmulatedMemory, HoldsNothingThatAProgramMayRelyOn) {
  TestContext rig({.device = first_device()});
  const Tensor x = fetch(rig.stream, rig.context.empty({4}, DType::f32));
  EXPECT_LT(x.data<float>()[3], -1e36f);
}

TEST(EmulatedMemory, RefusesKernelsThatPointToTheHost) {
  const Stream stream = Stream::on(first_device());
  float on_the_stack = 0.0f;
  auto on_the_heap = std::make_unique<float>(0.0f);
  static float of_the_program = 0.0f;
  for (float* word : {&on_the_stack, on_the_heap.get(), &of_the_program}) {
    const std::string refused = error_of([&] { run_once(stream, Store{word, 1.0f}); });
    EXPECT_NE(refused.find("memory of the host's"), std::string::npos) << refused;
  }
  const Tensor pinned = host_tensor({1}, DType::f32, first_device());
  run_once(stream, Store{pinned.data<float>(), 2.0f});
  stream.synchronize();
  EXPECT_EQ(*pinned.data<float>(), 2.0f);
}

struct Large {
  float* into;
  char rest[5000];
  void operator()() const { *into = rest[0]; }
};

TEST(EmulatedMemory, RefusesArgumentsThatNoDeviceTakes) {
  TestContext rig({.device = first_device()});
  const Tensor x = rig.context.zeros({1}, DType::f32);
  const std::string refused = error_of([&] { run_once(rig.stream, Large{x.data<float>(), {}}); });
  EXPECT_EQ(refused, "a kernel's argument of 5008 bytes; a device takes 4096");
}

/// An ordered copy of memory that is not pinned would silently wait for the device.
TEST(EmulatedMemory, IsCopiedInOrderToPinnedMemoryOnly) {
  TestContext rig({.device = first_device()});
  const Tensor device = rig.context.zeros({2}, DType::f32);
  const std::string refused = error_of([&] { copy(rig.stream, Tensor({2}, DType::f32), device); });
  EXPECT_NE(refused.find("not pinned"), std::string::npos) << refused;
}

TEST(EmulatedMemory, RunsOutWithWordsThatHelp) {
  const size_t limit = Memory::get().limit();
  Memory::get().set_limit(Memory::get().mapped_bytes() + (size_t{4} << 20));
  {
    TestContext rig({.device = first_device()});
    const Tensor some = rig.context.empty({1 << 20}, DType::u8);
    const std::string refused = error_of([&] { rig.context.empty({64 << 20}, DType::u8); });
    EXPECT_EQ(refused.find("emulated:0: out of memory: 67108864 bytes asked for, 2097152 bytes "
                           "held, of which 1048576 are in use"),
              0u)
        << refused;
  }
  Memory::get().set_limit(limit);
}

TEST(EmulatedMemory, GrowsOnAfterItRanOut) {
  const size_t limit = Memory::get().limit();
  Memory::get().set_limit(Memory::get().mapped_bytes() + (size_t{4} << 20));
  {
    MemoryPool pool(first_device());
    const Tensor some({1 << 20}, DType::u8, pool, 0);
    EXPECT_NE(error_of([&] { Tensor({64 << 20}, DType::u8, pool, 0); }), "");
    const Tensor more({2 << 20}, DType::u8, pool, 0);  // at the free end, which has to grow
    EXPECT_NE(Memory::get().alias(more.raw(), 2 << 20), nullptr);
  }
  Memory::get().set_limit(limit);
}

TEST(EmulatedMemory, OfAnEndedStreamIsLentAgainAfterTheStreamsWork) {
  for (const uint64_t seed : {0u, 1u, 2u}) {
    emulated::Queues::get().shuffle(seed);
    MemoryPool pool(first_device());
    const std::byte* before = nullptr;
    for (int round = 0; round < 5; ++round) {
      const Stream stream = Stream::on(first_device());
      const Tensor x({4 << 20}, DType::f32, pool, stream.id());
      EXPECT_TRUE(round == 0 || x.raw() == before);
      before = x.raw();
      run_once(stream, Store{x.data<float>(), static_cast<float>(round)});
      // nothing but their end has made the streams before this one do their work
      if (round >= 3) {
        EXPECT_EQ(*fetch(stream, x.slice(0, {1})).data<float>(), static_cast<float>(round));
      }
    }
    EXPECT_EQ(pool.stats().reserved_bytes, 16 << 20);
  }
  emulated::Queues::get().shuffle(0);
}

TEST(EmulatedMemory, OfAStreamWithAnotherHandleIsNotLentAgain) {
  MemoryPool pool(first_device());
  std::optional<Stream> handle;
  std::byte* before = nullptr;
  {
    const Stream stream = Stream::on(first_device());
    before = Tensor({1 << 20}, DType::u8, pool, stream.id()).raw();
    handle = stream;
  }
  const Stream other = Stream::on(first_device());
  EXPECT_NE(Tensor({1 << 20}, DType::u8, pool, other.id()).raw(), before);
  handle.reset();
  const Stream third = Stream::on(first_device());
  EXPECT_EQ(Tensor({1 << 20}, DType::u8, pool, third.id()).raw(), before);
}

TEST(EmulatedMemory, IsGivenBack) {
  const size_t before = Memory::get().mapped_bytes();
  {
    TestContext rig({.device = first_device()});
    const Tensor x = rig.context.zeros({1 << 20}, DType::f32);
    EXPECT_GT(Memory::get().mapped_bytes(), before);
  }
  EXPECT_EQ(Memory::get().mapped_bytes(), before);
}

TEST(EmulatedMemory, EndsWhereItEnds) {
  std::byte* view = Memory::get().reserve(size_t{4} << 20);
  ASSERT_TRUE(Memory::get().map(view, size_t{2} << 20));
  EXPECT_FALSE(Memory::get().map(view + (1 << 20), size_t{1} << 20));  // part of it is mapped
  EXPECT_FALSE(Memory::get().map(view, size_t{8} << 20));              // beyond the range
  EXPECT_NE(Memory::get().alias(view + 100, 8), nullptr);
  EXPECT_NE(error_of([&] { Memory::get().alias(view + (2 << 20) - 4, 8); }), "");
  EXPECT_FALSE(Memory::get().release(view, size_t{4} << 20));  // part of it is still mapped
  EXPECT_TRUE(Memory::get().unmap(view, size_t{2} << 20));
  EXPECT_NE(error_of([&] { Memory::get().alias(view, 1); }), "");
  EXPECT_TRUE(Memory::get().release(view, size_t{4} << 20));
  EXPECT_EQ(Memory::get().alias(view, 1), nullptr);
}

}  // namespace
}  // namespace wisp
