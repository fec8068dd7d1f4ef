// Tests that the loops of core/loops/parallel.h give the CPU's bits on a device.
#include <gtest/gtest.h>

#include <cstring>

#include "core/copy.h"
#include "core/loops/parallel_ranges.h"
#include "core/loops/select_ranges.h"
#include "tests/core/loops/functors.h"
#include "tests/support/devices.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

class DeviceLoops : public DeviceTest {};

struct SelectAboveThreshold {
  const float* x;
  float threshold;
  int64_t* index;
  int64_t* selected;
  WISP_HD bool operator()(int64_t i) const { return x[i] > threshold; }
  WISP_HD void emit(int64_t position, int64_t i) const { index[position] = i; }
  WISP_HD int64_t* count() const { return selected; }
};

/// The kernel of the only range.
struct SelectAboveOf {
  SelectAboveThreshold kernel;
  WISP_HD SelectAboveThreshold operator()(int64_t) const { return kernel; }
};

struct Double {
  int64_t* word;
  WISP_HD void operator()() const { *word *= 2; }
};

/// The results of each loop over `x` on one device.
struct Loops {
  Tensor sum, squares, once, count, index, counted, sums;

  Loops(const Device& device, const Tensor& host, int64_t limit) {
    TestContext rig({.compute = DType::f32, .device = device});
    const Context& context = rig.context;
    const int64_t n = host.numel();
    const auto put = [&](const Tensor& from) {
      const Tensor to = context.empty(from.shape(), from.dtype());
      copy_now(context.stream, from, to);
      return to;
    };
    const Tensor words({1}, DType::i64);
    *words.data<int64_t>() = limit;
    const Tensor x = put(host), few = put(words), y = context.zeros({n}, DType::f32);
    const Tensor total = context.zeros({1}, DType::f32), doubled = put(words);
    const Tensor selected = context.zeros({1}, DType::i64);
    const Tensor where = context.zeros({n}, DType::i64);
    const int64_t chunks = SelectRange::chunks(n);
    const Tensor row({sizeof(SelectRange)}, DType::u8);
    *reinterpret_cast<SelectRange*>(row.raw()) = {n, 0, 0, 0, chunks};
    const Tensor some = context.zeros({n}, DType::f32);
    parallel_for(context.stream, n, AddSquare{x.data<float>(), y.data<float>()});
    parallel_for_counted(context.stream, few.data<int64_t>(), n,
                         AddSquare{x.data<float>(), some.data<float>()});
    parallel_reduce(context.stream, n, SumOfFloats{x.data<float>()}, total.data<float>());
    run_once(context.stream, Double{doubled.data<int64_t>()});
    const Tensor rows = put(row), masks = context.empty({8 * SelectRange::words(n)}, DType::u8);
    const Tensor of_chunk = context.empty({chunks}, DType::i64);
    parallel_select_ranges(
        context.stream,
        SelectRanges<SelectRange>{reinterpret_cast<const SelectRange*>(rows.raw()), 1, chunks, n,
                                  reinterpret_cast<uint64_t*>(masks.raw()),
                                  of_chunk.data<int64_t>()},
        SelectAboveOf{{x.data<float>(), 0.25f, where.data<int64_t>(), selected.data<int64_t>()}});
    const Ranges::Range parts[] = {{0, n / 3, 1}, {n / 3, n - n / 3, 0}};
    const Tensor two = context.zeros({2}, DType::f32);
    parallel_reduce_ranges(context.stream,
                           Ranges(context.stream, context.pool, parts, sizeof(float)),
                           SumOfFloats{x.data<float>()}, two.data<float>());
    const auto get = [&](const Tensor& from) { return fetch(context.stream, from); };
    sum = get(total), squares = get(y), once = get(doubled), count = get(selected);
    index = get(where), counted = get(some), sums = get(two);
    for (Tensor* result : {&sum, &squares, &once, &count, &index, &counted, &sums}) {
      const Tensor own(result->shape(), result->dtype());
      std::memcpy(own.raw(), result->raw(), static_cast<size_t>(own.bytes()));
      *result = own;  // outlives the pool
    }
  }
};

void expect_same(const Tensor& a, const Tensor& b, const char* what) {
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())), 0) << what;
}

TEST_F(DeviceLoops, GiveTheBitsOfTheCpu) {
  for (const int64_t n : {1, 15, 64, 4097, 8193, 100'003}) {
    const Tensor x = random_tensor({n}, static_cast<uint64_t>(n), DType::f32);
    const Loops cpu({}, x, n / 2), device(first_device(), x, n / 2);
    expect_same(cpu.sum, device.sum, "reduce");
    expect_same(cpu.squares, device.squares, "for");
    expect_same(cpu.counted, device.counted, "counted for");
    expect_same(cpu.once, device.once, "once");
    expect_same(cpu.count, device.count, "select, count");
    expect_same(cpu.index, device.index, "select, index");
    expect_same(cpu.sums, device.sums, "reduce of ranges");
  }
}

struct Mark {
  int64_t* word;
  int64_t value;
  WISP_HD void operator()() const { *word = value; }
};

struct Copy {
  const int64_t* from;
  int64_t* to;
  WISP_HD void operator()() const { *to = *from; }
};

// A stream's scratch memory belongs to that stream alone, up to its last word, and lives as long as
// the stream.
TEST_F(DeviceLoops, HaveScratchOfTheirStreamsOwn) {
  TestContext rig({.device = first_device()});
  const Stream other = Stream::on(first_device());
  const Stream handle = rig.stream;  // another handle of the same queue
  const auto last = [](const Stream& stream) {
    return reinterpret_cast<int64_t*>(stream.scratch() + Stream::kScratchBytes) - 1;
  };
  EXPECT_EQ(last(handle), last(rig.stream));
  run_once(rig.stream, Mark{last(rig.stream), 5});
  run_once(other, Mark{last(other), 6});
  other.synchronize();
  const Tensor kept = rig.context.zeros({1}, DType::i64);
  run_once(handle, Copy{last(handle), kept.data<int64_t>()});
  EXPECT_EQ(*fetch(handle, kept).data<int64_t>(), 5);
  EXPECT_EQ(Stream::immediate().scratch(), nullptr);
}

}  // namespace
}  // namespace wisp
