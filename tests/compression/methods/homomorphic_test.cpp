// Aggregation in compressed form is a property of a code, not of a method. Where a code says that
// its payloads are summed, their sum must decode to the sum of the decoded payloads.
#include <gtest/gtest.h>

#include <cmath>

#include "compression/code.h"
#include "distributed/communicator/reduction.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

constexpr int kSummedWorkers = 5;

struct CodeWorker {
  TestContext test;
  Tensor gradient, scratch, agreed, payload;
};

Tensor sum_of(std::vector<CodeWorker>& workers, Tensor CodeWorker::*part, const Message& message) {
  std::vector<const std::byte*> sources;
  for (CodeWorker& worker : workers) sources.push_back((worker.*part).raw());
  Tensor sum({message.bytes}, DType::u8);
  reduce_elements(sources, sum.raw(), message.bytes / size_of(message.dtype), message.dtype,
                  message.op);
  return sum;
}

/// Relative error of a sum that the wire rounds once.
float tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-11f;
    case DType::bf16:
      return 0x1p-8f;
    case DType::f32:
      return 0x1p-23f;  // sums in another order
    default:
      return 0.0f;  // integers
  }
}

/// Integers up to 889 = 7 · 127, which each slice contains, so steps between levels are whole.
void fill_with_integers(Tensor& gradient, int rank, std::span<const Field> fields) {
  for (const Field& field : fields) {
    for (const Slice& slice : field.slices) {
      for (int64_t i = 0; i < slice.numel; ++i) {
        const int64_t value = (i * 7919 + rank * 631 + slice.offset) % 1779 - 889;
        gradient.data<float>()[slice.offset + i] = static_cast<float>(value);
      }
      gradient.data<float>()[slice.offset] = rank % 2 == 0 ? 889.0f : -889.0f;
    }
  }
}

std::unique_ptr<Code> make_code(const std::string& name) {
  Config config = Config::from_text("compression.scaler = \"shared\"", "test.toml");
  return CodeRegistry::instance().find("code", name).make(config, {.workers = kSummedWorkers});
}

StepInfo test_info() {
  StepInfo info;
  info.ranks = info.summands = kSummedWorkers;
  info.ratio = 0.5;
  return info;
}

class Homomorphic : public testing::TestWithParam<std::string> {};

TEST_P(Homomorphic, SumsOfPayloadsDecodeToSums) {
  const std::unique_ptr<Code> code = make_code(GetParam());
  std::vector<Field> fields = layer_fields({1, 300, 1000});
  fields.push_back(joined_field({70, 200}));
  for (Slice& slice : fields.back().slices) slice.offset += 2000;
  const UnitSpec spec{fields, 1571};
  StepInfo info = test_info();
  const Message message = code->message(spec, info);

  std::vector<CodeWorker> workers(kSummedWorkers);
  const Message agreement = code->agreement(spec, info);
  const auto source = [](CodeWorker& worker) { return Source{worker.gradient.data<float>()}; };
  for (int rank = 0; rank < kSummedWorkers; ++rank) {
    CodeWorker& worker = workers[static_cast<size_t>(rank)];
    worker.gradient = Tensor({2500}, DType::f32);
    fill_with_integers(worker.gradient, rank, fields);
    worker.scratch = Tensor({code->scratch_bytes(spec, info)}, DType::u8);
    worker.agreed = Tensor({agreement.bytes}, DType::u8);
    worker.payload = Tensor({message.bytes}, DType::u8);
    info.rank = rank;
    if (agreement.kind != Collective::none)
      code->propose(worker.test.context, source(worker), spec, info,
                    {worker.agreed.raw(), agreement.bytes}, worker.scratch.raw());
  }
  Tensor agreed;
  if (agreement.kind != Collective::none) agreed = sum_of(workers, &CodeWorker::agreed, agreement);

  Tensor added({2500}, DType::f32), at_once({2500}, DType::f32);
  for (int rank = 0; rank < kSummedWorkers; ++rank) {
    CodeWorker& worker = workers[static_cast<size_t>(rank)];
    info.rank = rank;
    if (agreed.defined())
      code->agree(worker.test.context, {-1, agreed.raw(), agreement.bytes}, spec, info,
                  worker.scratch.raw());
    code->encode(worker.test.context, source(worker), spec, info,
                 {worker.payload.raw(), message.bytes}, worker.scratch.raw());
    code->decode(worker.test.context, {rank, worker.payload.raw(), message.bytes}, 1.0f, rank > 0,
                 spec, info, added, worker.scratch.raw());
  }
  const Tensor sum = sum_of(workers, &CodeWorker::payload, message);
  code->decode(workers[0].test.context, {-1, sum.raw(), message.bytes}, 1.0f, false, spec, info,
               at_once, workers[0].scratch.raw());
  bool all_zero = true;
  for (int64_t i = 0; i < 2500; ++i) {
    const float expected = added.data<float>()[i];
    all_zero = all_zero && expected == 0.0f;
    ASSERT_LE(std::fabs(at_once.data<float>()[i] - expected),
              tolerance_of(message.dtype) * std::fabs(expected))
        << GetParam() << ", " << i;
  }
  EXPECT_FALSE(all_zero);
}

/// The codes whose message is an all-reduce.
std::vector<std::string> summed_codes() {
  std::vector<std::string> names;
  const std::vector<Field> fields = layer_fields({100});
  for (const auto& [name, entry] : CodeRegistry::instance().entries()) {
    if (make_code(name)->message({fields, 100}, test_info()).kind == Collective::all_reduce)
      names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Codes, Homomorphic, testing::ValuesIn(summed_codes()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace wisp
