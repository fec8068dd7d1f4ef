// Images, counts, checksums and comparisons for the tests of image models. One thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/io/checksum.h"
#include "core/tensor/channel_order.h"
#include "models/model.h"
#include "tests/support/tensors.h"

namespace wisp {

/// Images of one size and a number of classes.
inline Facts image_facts(int64_t height, int64_t width, int64_t classes) {
  return {.inputs = {{"input", {height, width, 3}}}, .classes = classes};
}

inline Batch image_batch(int64_t rows, int64_t height, int64_t width, DType dtype,
                         int64_t classes = 10) {
  Tensor labels({rows}, DType::i32);
  for (int64_t i = 0; i < rows; ++i)
    labels.data<int32_t>()[i] = static_cast<int32_t>(i * 3 % classes);
  return {.inputs = {random_tensor({rows, height, width, 3}, 7, dtype)},
          .targets = labels,
          .samples = sample_ids(rows),
          .count = rows};
}

inline int64_t parameter_count(Module& module) {
  int64_t count = 0;
  for (const Parameter* parameter : module.parameters()) count += parameter->shape.numel();
  return count;
}

/// The checksum of scripts/torch_logits.py: CRC-32C over the sorted lines "NAME (EXTENT, …)\n"
/// of the tensors in a file of weights, without num_batches_tracked.
inline uint32_t checksum_of_names(Model& model) {
  std::vector<std::string> lines;
  const auto add = [&](const auto* tensor) {
    lines.push_back(concat(model.exchange_names(tensor->name).front(), " ",
                           channels_first(tensor->shape), "\n"));
  };
  for (const Parameter* parameter : model.parameters()) add(parameter);
  for (const Buffer* buffer : model.buffers()) add(buffer);
  std::sort(lines.begin(), lines.end());
  uint32_t checksum = 0;
  for (const std::string& line : lines) checksum = crc32c(line.data(), line.size(), checksum);
  return checksum;
}

/// Expects the logits that PyTorch computes in f64 (scripts/torch_logits.py).
inline void expect_logits(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  // f32 rounds at 6e-8; over 16 layers and logits below 10 that grew to 2e-5
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
}

}  // namespace wisp
