#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

TEST(Tensor, HostTensorIsZeroAndAligned) {
  const Tensor t({3, 5}, DType::f32);
  EXPECT_EQ(values(t), std::vector<double>(15, 0.0));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % 64, 0u);
  EXPECT_EQ(t.bytes(), 60);
}

TEST(Tensor, CopiesShareTheirStorage) {
  const Tensor a({2}, DType::f64);
  Tensor b;
  b = a;
  b.data<double>()[1] = 4;
  EXPECT_EQ(values(a), (std::vector<double>{0, 4}));
}

TEST(Tensor, ViewsAreRowsSlicesAndShapes) {
  const Tensor t = tensor({3, 2}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(values(t.rows(1, 3)), (std::vector<double>{2, 3, 4, 5}));
  EXPECT_EQ(t.rows(1, 3).shape(), Shape({2, 2}));
  EXPECT_EQ(values(t.rows(1, 3).rows(1, 2)), (std::vector<double>{4, 5}));
  EXPECT_EQ(values(t.slice(3, {2})), (std::vector<double>{3, 4}));
  EXPECT_EQ(t.reshape({6}).raw(), t.raw());
  EXPECT_EQ(t.rows(1, 1).numel(), 0);
}

TEST(Shape, HasAsManyElementsAsCanBeCounted) {
  constexpr int64_t kMost = int64_t{1} << 58;
  EXPECT_EQ(Shape({kMost / 4, 4}).numel(), kMost);
  EXPECT_EQ(Shape({kMost, 0}).numel(), 0);
  EXPECT_EQ(error_of([] {
              Shape({kMost, 0, 2});
            }),
            concat("out of memory: a shape of (", kMost, ", 0, 2), expected at most 2^58 elements"))
      << "another count of rows may follow";
  const std::string refusal = ", expected at most 2^58 elements";
  EXPECT_EQ(error_of([] {
              Shape({kMost / 4, 5});
            }),
            concat("out of memory: a shape of (", kMost / 4, ", 5)", refusal));
  EXPECT_EQ(error_of([] {
              Shape({int64_t{1} << 32, int64_t{1} << 32, 3});
            }),
            concat("out of memory: a shape of (4294967296, 4294967296, 3)", refusal));
  EXPECT_EQ(error_of([] {
              Shape({2, 2}).with_rows(kMost);
            }),
            concat("out of memory: a shape of (", kMost, ", 2)", refusal));
  EXPECT_EQ(error_of([] {
              Shape({2, 2}).with_columns(kMost);
            }),
            concat("out of memory: a shape of (2, ", kMost, ")", refusal));
  EXPECT_EQ(error_of([] { Tensor({kMost}, DType::f64); }),
            concat("out of memory: ", kMost * 8, " bytes asked for"));
}

TEST(Tensor, UndefinedHasNoStorage) {
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(t.raw(), nullptr);
}

TEST(Tensor, RefusesViewsThatLeaveIt) {
  const Tensor t({3, 2}, DType::f32);
  EXPECT_NE(error_of([&] { t.reshape({4}); }).find("(3, 2) has 6 elements"), std::string::npos);
  EXPECT_NE(error_of([&] { t.rows(2, 4); }).find("[2, 4)"), std::string::npos);
  EXPECT_NE(error_of([&] { t.rows(2, 1); }).find("[2, 1)"), std::string::npos);
  EXPECT_NE(error_of([&] { t.slice(5, {2}); }).find("6 elements"), std::string::npos);
  EXPECT_NE(error_of([&] { t.slice(-1, {2}); }).find("-1"), std::string::npos);
}

TEST(Tensor, PoolMemoryReturnsWithTheLastView) {
  MemoryPool pool;
  Tensor view;
  {
    const Tensor t({16}, DType::f32, pool, 1);
    view = t.rows(2, 4);
  }
  EXPECT_EQ(pool.stats().used_bytes, 64);
  view = {};
  EXPECT_EQ(pool.stats().used_bytes, 0);
}

}  // namespace
}  // namespace wisp
