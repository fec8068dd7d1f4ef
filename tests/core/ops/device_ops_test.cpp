// Tests of ops whose rows are longer than a small team's part. They give the CPU's bits on a
// device, and with the elements of teams in another order.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/copy.h"
#include "core/loops/parallel_teams.h"
#include "core/ops.h"
#include "tests/support/devices.h"
#include "tests/support/tensors.h"
#include "tests/support/test_context.h"

namespace wisp {
namespace {

/// A worker on a device, and leaves whose gradients lie there.
class Worker final : public GradOwner {
 public:
  Worker(const Device& device, DType compute) : rig_({.compute = compute, .device = device}) {
    context().training = true;
    context().seed = 3;
    context().samples = place(sample_ids(4));
  }
  Context& context() { return rig_.context; }
  Tensor place(const Tensor& host) {
    const Tensor there = context().empty(host.shape(), host.dtype());
    copy_now(context().stream, host, there);
    return there;
  }
  Variable leaf(const Tensor& host) {
    gradients_.push_back(
        place(full(host.shape(), std::numeric_limits<double>::quiet_NaN(), host.dtype())));
    return Variable::leaf(context(), place(host), *this, static_cast<int>(gradients_.size()) - 1);
  }
  Tensor gradient(int id) override { return gradients_[static_cast<size_t>(id)]; }
  void ready(int) override {}

  /// The loss and the gradients of all leaves.
  std::vector<std::vector<double>> outcome(const std::function<Variable(Worker&)>& loss) {
    const Variable root = loss(*this);
    backward(root);
    std::vector<std::vector<double>> found{values(fetch(context().stream, root.value()))};
    for (const Tensor& gradient : gradients_)
      found.push_back(values(fetch(context().stream, gradient)));
    return found;
  }

 private:
  TestContext rig_;
  std::vector<Tensor> gradients_;
};

/// Words, some of them frequent and two outside the table, up to a loss over 1,300 classes.
Variable words(Worker& worker) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(i % 3 == 0 ? 7 : i % 11);
  ids[5] = -1;
  ids[20] = 13;  // beyond the table
  const Variable table = worker.leaf(random_tensor({12, 700}, 1, DType::f32));
  const Variable x = dropout(embedding(table, worker.place(tensor_of(ids))), 0.3, 9);
  const Variable turned = join_columns({columns(x, 650, 700), columns(x, 0, 650)});
  const Variable images = pad_channels(reshape(turned, {10, 2, 2, 700}), 1300, 1);
  const Variable pooled = reshape(images, {40, 1300});
  Variable logits = pooled;
  if (std::string(device_kind()) == "emulated")  // a GPU's library gives other bits
    logits = linear(pooled, worker.leaf(random_tensor({1300, 1300}, 2, DType::f32)),
                    worker.leaf(random_tensor({1300}, 4, DType::f32)));
  std::vector<int32_t> labels;
  for (int i = 0; i < 40; ++i) labels.push_back(i % 7 == 0 ? -1 : 31 * i);
  return cross_entropy(widen(logits), worker.place(tensor_of(labels)), 0.1);
}

/// Three sequences of 14, 14 and 6 frames of 600 classes.
Variable speech(Worker& worker) {
  std::vector<int64_t> rows(14, 2);
  std::fill_n(rows.begin(), 6, 3);
  const Variable logits = worker.leaf(random_tensor({34, 600}, 5, DType::f32));
  Tensor labels({3, 5}, DType::i32);
  const int32_t numbers[] = {1, 1, 599, 4, 1, 17, 18, -1, -1, -1, 3, 3, 3, -1, -1};
  std::copy(std::begin(numbers), std::end(numbers), labels.data<int32_t>());
  return ctc_loss(logits, rows, worker.place(labels));
}

Variable means(Worker& worker) {
  const Variable images = worker.leaf(random_tensor({3, 2, 2, 700}, 6, worker.context().compute));
  return cross_entropy(widen(global_avg_pool(images)),
                       worker.place(tensor_of(std::vector<int32_t>{1, 699, 640})));
}

Variable windows(Worker& worker) {
  const Variable images = worker.leaf(random_tensor({3, 4, 3, 700}, 8, worker.context().compute));
  const Variable logits = flatten(adaptive_avg_pool(images, {3, 2}));
  return cross_entropy(widen(logits), worker.place(tensor_of(std::vector<int32_t>{1, 4199, 640})));
}

/// Mixed rows of 600 numbers. The last two have one label.
Variable mixtures(Worker& worker) {
  const Context& context = worker.context();
  const Tensor labels = worker.place(tensor_of<int32_t>({1, 599, 7, 7}));
  const Tensor shares = mixup_shares(context, labels, 0.4);
  const Tensor x = worker.place(random_tensor({4, 600}, 9, context.compute));
  const Variable mixed(worker.context(), mix_neighbours(context, x, shares));
  const Variable logits = add(mixed, worker.leaf(random_tensor({4, 600}, 10, context.compute)));
  return cross_entropy(widen(logits), labels, 0.1, shares);
}

class DeviceOps : public DeviceTest {};

void expect_bits_of_the_cpu(DType compute, const std::function<Variable(Worker&)>& loss) {
  SCOPED_TRACE(name_of(compute));
  const auto expected = Worker({}, compute).outcome(loss);
  ASSERT_TRUE(std::isfinite(expected[0][0]));
  EXPECT_EQ(Worker(first_device(), compute).outcome(loss), expected);
  const ShuffledTeams shuffled(11);
  EXPECT_EQ(Worker({}, compute).outcome(loss), expected) << "in another order";
}

TEST_F(DeviceOps, OfLongRowsGiveTheBitsOfTheCpu) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    expect_bits_of_the_cpu(compute, words);
    expect_bits_of_the_cpu(compute, means);
    expect_bits_of_the_cpu(compute, windows);
    expect_bits_of_the_cpu(compute, mixtures);
  }
  expect_bits_of_the_cpu(DType::f32, speech);
}

}  // namespace
}  // namespace wisp
