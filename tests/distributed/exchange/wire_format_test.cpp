// Tests that the program sends the bytes that docs/wire_format.md shows.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "compression/error_feedback.h"
#include "distributed/communicator/thread_communicator.h"
#include "distributed/synchronizer_recipe.h"
#include "tests/support/damaging_communicator.h"
#include "tests/support/method_rig.h"
#include "tests/support/ranks.h"
#include "tests/support/test_replica.h"
#include "tests/support/unit_rig.h"
#include "tests/support/weights_rig.h"

namespace wisp {
namespace {

using Lines = std::vector<std::string>;

/// The page's fenced code blocks of this language.
std::vector<Lines> blocks(const std::string& language) {
  std::ifstream page(WISP_SOURCE_DIR "/docs/wire_format.md");
  std::vector<Lines> found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (!inside && line == "```" + language) {
      found.emplace_back();
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back().push_back(line);
    }
  }
  return found;
}

/// Appends the bytes of a line: two for "00 ff ; text".
void append_hex(const std::string& line, PayloadBytes& bytes) {
  std::istringstream words(line.substr(0, line.find(';')));
  for (std::string word; words >> word;)
    bytes.push_back(static_cast<std::byte>(std::stoi(word, nullptr, 16)));
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x ", std::to_integer<unsigned>(byte));
    text += digits;
  }
  return text;
}

/// The fields in a text: {1, 0, 0, 0} and {2} for "1 0*3 | 2".
std::vector<std::vector<float>> fields_of(const std::string& text) {
  std::vector<std::vector<float>> fields(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "|") {
      fields.emplace_back();
      continue;
    }
    const size_t times = word.find('*');
    const size_t count = times == std::string::npos ? 1 : std::stoul(word.substr(times + 1));
    fields.back().insert(fields.back().end(), count, std::stof(word));
  }
  return fields;
}

/// An example of the page. Its keys are method, config (a line of TOML; may be repeated), workers,
/// ratio, step, rows (of each field), gradient and squares (the same on all workers). Then come the
/// bytes that rank 0 encodes in each round.
struct Example {
  std::string method, toml;
  int workers = 1;
  StepInfo info;
  std::vector<int64_t> rows;
  std::vector<std::vector<float>> gradient, squares;
  std::vector<PayloadBytes> rounds;

  explicit Example(const Lines& lines) {
    info.lr = 0.1;
    for (const std::string& line : lines) {
      const size_t colon = line.find(':');
      if (line.rfind("round ", 0) == 0) {
        EXPECT_EQ(line, concat("round ", rounds.size(), ":"));
        rounds.emplace_back();
      } else if (!rounds.empty()) {
        append_hex(line, rounds.back());
      } else {
        WISP_CHECK(colon != std::string::npos, "expected KEY: VALUE, not '", line, "'");
        set(line.substr(0, colon), line.substr(colon + 2));
      }
    }
  }

  void set(const std::string& key, const std::string& value) {
    std::istringstream words(value);
    if (key == "method") {
      method = value;
    } else if (key == "config") {
      toml += value + "\n";
    } else if (key == "workers") {
      workers = std::stoi(value);
    } else if (key == "ratio") {
      info.ratio = std::stod(value);
    } else if (key == "step") {
      info.step = info.applied = std::stoll(value);
    } else if (key == "rows") {
      for (int64_t count = 0; words >> count;) rows.push_back(count);
    } else if (key == "gradient") {
      gradient = fields_of(value);
    } else if (key == "squares") {
      squares = fields_of(value);
    } else {
      throw Error("unknown key '" + key + "'");
    }
  }

  std::vector<Field> fields() const {
    std::vector<int64_t> sizes;
    for (const auto& values : gradient) sizes.push_back(static_cast<int64_t>(values.size()));
    std::vector<Field> fields = layer_fields(sizes);
    for (size_t f = 0; f < rows.size(); ++f) fields.at(f).rows = rows[f];
    return fields;
  }
};

void fill(const std::vector<Field>& fields, const std::vector<std::vector<float>>& values,
          float* arena) {
  for (size_t f = 0; f < values.size(); ++f)
    std::copy(values[f].begin(), values[f].end(), arena + fields[f].slices[0].offset);
}

/// The bytes that rank 0 sends in each round.
std::vector<PayloadBytes> sent_by(const Example& example) {
  if (example.method == "none") {  // sends its gradient in place
    PayloadBytes bytes;
    for (const auto& values : example.gradient) {
      const auto* data = reinterpret_cast<const std::byte*>(values.data());
      bytes.insert(bytes.end(), data, data + values.size() * sizeof(float));
    }
    return {bytes};
  }
  const CompressorSetup setup{.workers = example.workers, .momentum = 0.9};
  const std::vector<Field> fields = example.fields();
  MethodRig rig(example.workers, fields,
                [&] { return make_method(example.method, example.toml, setup); });
  for (int rank = 0; rank < example.workers; ++rank) {
    fill(fields, example.gradient, rig.gradient(rank));
    fill(fields, example.squares, rig.square(rank));
  }
  rig.step(example.info);
  std::vector<PayloadBytes> rounds;
  StepInfo info = example.info;
  info.ranks = info.summands = example.workers;
  const int count = rig.compressor(0).rounds(rig.unit(0).spec, info);
  for (int round = 0; round < count; ++round) rounds.push_back(rig.sent(0, round));
  return rounds;
}

TEST(WireFormat, EveryMethodSendsWhatThePageShows) {
  std::set<std::string> shown;
  for (const Lines& lines : blocks("wire")) {
    const Example example(lines);
    SCOPED_TRACE(example.method);
    shown.insert(example.method);
    const std::vector<PayloadBytes> sent = sent_by(example);
    ASSERT_EQ(sent.size(), example.rounds.size());
    for (size_t round = 0; round < sent.size(); ++round)
      EXPECT_EQ(hex(sent[round]), hex(example.rounds[round])) << "round " << round;
  }
  for (const auto& [name, entry] : CompressorRegistry::instance().entries())
    EXPECT_EQ(shown.count(name), 1u) << name << " has no example in docs/wire_format.md";
}

TEST(WireFormat, AMessageIsWhatThePageShows) {
  const std::vector<Lines> shown = blocks("wire-message");
  ASSERT_EQ(shown.size(), 1u);
  PayloadBytes expected;
  for (const std::string& line : shown[0]) append_hex(line, expected);

  ReplicaOptions options = all_by([] { return make_method("topk", ""); });
  options.shapes = {{4}};
  options.averaging.ratio = [](double) { return 0.25; };
  std::string arrived;
  ThreadGroup group(2);
  run_ranks(group, [&](Communicator& communicator) {
    DamagingCommunicator seeing(communicator, [&](int call, std::span<const Bytes> in) {
      if (communicator.rank() == 1 && call == 1) arrived = hex({in[0].data, size_t(in[0].bytes)});
    });
    TestReplica(seeing, options).step(7, [](int, int64_t, int, int64_t i) {
      return i == 2 ? -1.5f : 0.5f;
    });
  });
  EXPECT_EQ(arrived, hex(expected));
}

TEST(WireFormat, GossipTellsWhatThePageShows) {
  const std::vector<Lines> shown = blocks("wire-neighbours");
  ASSERT_EQ(shown.size(), 2u);
  const auto told = [](const std::string& method, const std::vector<std::string>& keys,
                       const std::vector<double>& weights) {
    WeightsRun run;
    run.workers = 2;
    run.method = method;
    run.keys = keys;
    run.numels = {4};
    run.steps = 8;
    run.gradient = [&](int, int64_t step, int64_t i, double) {  // nonzero in the last step but one
      return step == 6 ? (1.0 - weights[static_cast<size_t>(i)]) / kRigLr : 0.0;
    };
    std::string arrived;  // last message
    run.damage = [&](int, std::span<const Bytes> in) {
      arrived = hex({in[0].data, static_cast<size_t>(in[0].bytes)});
    };
    weights_of(run);
    return arrived;
  };
  const auto page = [&](size_t example) {
    PayloadBytes bytes;
    for (const std::string& line : shown[example]) append_hex(line, bytes);
    return hex(bytes);
  };
  EXPECT_EQ(told("dpsgd", {}, {1.0, -2.5, 0.5, 0.25}), page(0));
  EXPECT_EQ(told("choco", {"gossip.code=topk", "compression.ratio=0.25"}, {1.5, 1.5, -0.5, 1.5}),
            page(1));
}

/// Methods that exchange weights have a section in the page, even without a payload of their own.
TEST(WireFormat, EveryWayToExchangeWeightsHasASection) {
  std::string headings;
  std::ifstream page(WISP_SOURCE_DIR "/docs/wire_format.md");
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("### ")) headings += line.substr(3) + ",";
  for (const auto& [name, entry] : SynchronizerRegistry::instance().entries())
    EXPECT_NE(headings.find(" " + name + ","), std::string::npos) << name;
}

}  // namespace
}  // namespace wisp
