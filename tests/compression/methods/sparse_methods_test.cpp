// Laws that hold for every method that sends some values of each field and keeps the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/method_rig.h"
#include "tests/support/step_info.h"
#include "tests/support/unit_rig.h"

namespace wisp {
namespace {

struct SparseCase {
  const char* name;
  const char* method;
  const char* toml;
};

const SparseCase kSparseCases[] = {
    {"Topk", "topk", ""},
    {"TopkNatural", "topk", "[compression]\nvalues = 'natural'\nindices = 'gamma'"},
    {"TopkBf16Bitmap", "topk", "[compression]\nvalues = 'bf16'\nindices = 'bitmap'"},
    {"TopkSampled", "topk", "compression.selection = 'sampled'"},
    {"Threshold", "threshold", "compression.threshold = 2.5"},
    {"Dgc", "dgc", "compression.masking = false"},
    {"DgcSampled", "dgc", "[compression]\nmasking = false\nselection = 'sampled'"},
    {"Gtopk", "gtopk", ""},
    {"GtopkSampled", "gtopk", "compression.selection = 'sampled'"},
    {"Oktopk", "oktopk", ""},
};

void PrintTo(const SparseCase& parameter, std::ostream* out) { *out << parameter.name; }

class SparseMethod : public testing::TestWithParam<SparseCase> {
 protected:
  MethodRig rig_of(int workers, std::vector<Field> fields) {
    return MethodRig(workers, std::move(fields),
                     [] { return make_method(GetParam().method, GetParam().toml); });
  }
};

/// Calls f(index) for each index of the arena that belongs to the unit.
template <class F>
void each_element(const UnitSpec& spec, const F& f) {
  for (const Field& field : spec.fields)
    for (const Slice& slice : field.slices)
      for (int64_t i = slice.offset; i < slice.offset + slice.numel; ++i) f(i);
}

std::vector<Field> large_and_small_field() {
  std::vector<Field> fields = {joined_field({5, 6000, 1}), layer_fields({40})[0]};
  fields[1].slices[0].offset = 6020;
  fields[1].key = 2;
  return fields;
}

/// Few different integers give ties, and sums that are exact in any order.
TEST_P(SparseMethod, LosesNothing) {
  for (const int workers : {1, 2, 3, 5}) {
    MethodRig rig = rig_of(workers, large_and_small_field());
    const UnitSpec& spec = rig.unit(0).spec;
    std::vector<double> given(6060, 0.0), kept(6060, 0.0);
    for (int64_t step = 0; step < 40; ++step) {
      for (int rank = 0; rank < workers; ++rank) {
        const Philox noise(6, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
        each_element(spec, [&](int64_t i) {
          const auto g = static_cast<float>(noise.below(static_cast<uint64_t>(i), 7)) - 3.0f;
          rig.gradient(rank)[i] = g;
          given[static_cast<size_t>(i)] += static_cast<double>(g);
        });
      }
      rig.step(sparse_info(step, 0.1));
      each_element(spec, [&](int64_t i) {
        for (int rank = 1; rank < workers; ++rank)
          ASSERT_EQ(rig.gradient(rank)[i], rig.gradient(0)[i]);
        kept[static_cast<size_t>(i)] += static_cast<double>(rig.gradient(0)[i]);
      });
    }
    for (int rank = 0; rank < workers; ++rank) {
      each_element(spec, [&](int64_t i) {
        kept[static_cast<size_t>(i)] +=
            static_cast<double>(rig.state(rank, "residual").data<float>()[i]);
      });
    }
    EXPECT_EQ(kept, given) << workers << " workers";
  }
}

using Draw = float (*)(const Philox&, uint64_t);

struct Input {
  const char* name;
  Draw draw;
};

const Input kInputs[] = {
    {"zeros", [](const Philox&, uint64_t) { return 0.0f; }},
    {"equal", [](const Philox&, uint64_t) { return -2.5f; }},
    {"denormal",
     [](const Philox& p, uint64_t i) { return float_from_bits(p.bits(i) & 0x807fffffu); }},
    {"huge", [](const Philox& p, uint64_t i) { return (2.0f * p.uniform(i) - 1.0f) * 5e36f; }},
    {"one", [](const Philox&, uint64_t i) { return i == 4500 ? 3.0f : 0.0f; }},
};

/// Results are finite, equal on all ranks, and not zero in at most the allowed share.
TEST_P(SparseMethod, TakesAnyFiniteNumbers) {
  for (const Input& input : kInputs) {
    for (const bool small : {false, true}) {
      MethodRig rig = rig_of(3, small ? layer_fields({1, 2}) : large_and_small_field());
      const UnitSpec& spec = rig.unit(0).spec;
      for (int64_t step = 0; step < 4; ++step) {
        for (int rank = 0; rank < 3; ++rank) {
          const Philox noise(7, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
          each_element(spec, [&](int64_t i) {
            rig.gradient(rank)[i] = input.draw(noise, static_cast<uint64_t>(i));
          });
        }
        rig.step(sparse_info(step, 0.01));
        int64_t travelled = 0;
        each_element(spec, [&](int64_t i) {
          const float value = rig.gradient(0)[i];
          ASSERT_TRUE(value - value == 0.0f) << input.name;  // finite
          for (int rank = 1; rank < 3; ++rank) ASSERT_EQ(rig.gradient(rank)[i], value);
          for (int rank = 0; rank < 3; ++rank) {
            const float kept = rig.state(rank, "residual").data<float>()[i];
            ASSERT_TRUE(kept - kept == 0.0f) << input.name;
          }
          if (value != 0.0f) ++travelled;
        });
        EXPECT_LE(travelled, small ? 3 : 3 * (61 + 1)) << input.name;
      }
    }
  }
}

TEST_P(SparseMethod, KeepsItsResidualIfTheGradientIsNotFinite) {
  MethodRig rig = rig_of(2, layer_fields({8000}));
  for (int64_t step = 0; step < 2; ++step) {
    for (int rank = 0; rank < 2; ++rank)
      for (int64_t i = 0; i < 8000; ++i)
        rig.gradient(rank)[i] = Philox(1, static_cast<uint64_t>(step), 0)
                                    .uniform(static_cast<uint64_t>(i + 8000 * rank));
    rig.step(sparse_info(step, 0.01));
  }
  const float* residual = rig.state(1, "residual").data<float>();
  const std::vector<float> before(residual, residual + 8000);
  std::fill_n(rig.gradient(1), 8000, std::numeric_limits<float>::quiet_NaN());
  std::fill_n(rig.gradient(0), 8000, 0.5f);
  rig.unit(1).finite = false;
  rig.step(sparse_info(2, 0.01));
  EXPECT_EQ(std::vector<float>(residual, residual + 8000), before);
  for (int64_t i = 0; i < 8000; ++i) {
    ASSERT_TRUE(rig.gradient(1)[i] - rig.gradient(1)[i] == 0.0f);
    ASSERT_EQ(rig.gradient(0)[i], rig.gradient(1)[i]);
  }
}

/// Bits do not depend on how a field is cut into slices.
TEST_P(SparseMethod, TreatsSlicesAsOneField) {
  const std::vector<int64_t> sizes = {3000, 1, 12'000, 77};
  MethodRig split = rig_of(3, {joined_field(sizes)}), whole = rig_of(3, {joined_field({15'078})});
  for (int64_t step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 3; ++rank) {
      const Philox noise(8, static_cast<uint64_t>(step), static_cast<uint64_t>(rank));
      int64_t position = 0;
      each_element(split.unit(0).spec, [&](int64_t i) {
        const float g = 8.0f * noise.uniform(static_cast<uint64_t>(position)) - 4.0f;
        split.gradient(rank)[i] = whole.gradient(rank)[position++] = g;
      });
    }
    split.step(sparse_info(step, 0.01));
    whole.step(sparse_info(step, 0.01));
    for (int rank = 0; rank < 3; ++rank) {
      int64_t position = 0;
      each_element(split.unit(0).spec, [&](int64_t i) {
        ASSERT_EQ(split.gradient(rank)[i], whole.gradient(rank)[position]);
        ASSERT_EQ(split.state(rank, "residual").data<float>()[i],
                  whole.state(rank, "residual").data<float>()[position++]);
      });
    }
  }
}

/// The number of entries that a rank lists of a field of k · 100 elements, `others` of which are
/// not zero. It follows from the bytes of the round with the list: 4 for the count of each message,
/// and 8 for each entry.
int64_t listed(const SparseCase& method, int64_t k, int64_t others, float value) {
  MethodRig rig(2, layer_fields({100 * k}),
                [&] { return make_method(method.method, method.toml); });
  for (int64_t i = 0; i < 100 * k; ++i) rig.gradient(1)[i] = i % 2 == 0 ? 0.0f : -0.0f;
  for (int64_t i = 0; i < others; ++i) rig.gradient(1)[i * (100 * k / others)] = value;
  rig.step(sparse_info(0, 0.01));
  const bool oktopk = std::string(method.method) == "oktopk";  // borders first, then two messages
  const int64_t bytes = rig.sent_bytes(1, oktopk ? 1 : 0) - (oktopk ? 8 : 4);
  EXPECT_EQ(bytes % 8, 0) << method.name;
  return bytes / 8;
}

TEST(SparseMethods, ListNoZeros) {
  const SparseCase kMethods[] = {
      {"Topk", "topk", "compression.indices = 'u32'"},
      {"TopkSampled", "topk", "[compression]\nindices = 'u32'\nselection = 'sampled'"},
      {"Threshold", "threshold", "[compression]\nindices = 'u32'\nthreshold = 1e-30"},
      {"Dgc", "dgc", "compression.indices = 'u32'"},
      {"DgcSampled", "dgc", "[compression]\nindices = 'u32'\nselection = 'sampled'"},
      {"Gtopk", "gtopk", ""},
      {"GtopkSampled", "gtopk", "compression.selection = 'sampled'"},
      {"Oktopk", "oktopk", ""},
  };
  for (const SparseCase& method : kMethods) {
    for (const int64_t k : {8, 600}) {  // fields that are listed whole, and by a threshold
      for (const int64_t others : {int64_t{0}, int64_t{1}, k / 2, k})
        EXPECT_EQ(listed(method, k, others, 2.0f), others) << method.name << ", " << k;
      const bool whole = std::string(method.method) != "oktopk";  // oktopk limits its messages
      if (whole) {
        EXPECT_EQ(listed(method, k, 3 * k, 2.0f), k) << method.name;
      }
    }
  }
}

/// A number that the format rounds to zero is not sent: it stays where it is, and so does its
/// momentum.
TEST(SparseMethods, ListNothingThatTravelsAsZero) {
  for (const char* method : {"topk", "dgc"}) {
    for (const auto& [values, small] : {std::pair{"f16", 0x1p-25f}, {"natural", 0x1p-128f}}) {
      const std::string toml = concat("[compression]\nindices = 'runs16'\nvalues = '", values, "'");
      UnitRig rig(layer_fields({1000}), make_method(method, toml, {.momentum = 0.9}));
      for (int64_t i = 0; i < 1000; ++i) rig.gradient()[i] = small;
      rig.gradient()[70] = -1.0f;
      const PayloadBytes payload = rig.encode(sparse_info(0, 0.01));
      EXPECT_EQ(payload.size(), std::string(values) == "f16" ? 4u : 1u + 1u + 2u) << method;
      EXPECT_EQ(rig.residual()[70], 0.0f);
      EXPECT_EQ(std::count(rig.residual(), rig.residual() + 1000, small), 999) << method;
      if (std::string(method) == "dgc") {
        EXPECT_EQ(std::count(rig.momentum(), rig.momentum() + 1000, small), 999);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, SparseMethod, testing::ValuesIn(kSparseCases),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace wisp
