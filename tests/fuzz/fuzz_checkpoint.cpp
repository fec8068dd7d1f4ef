// Fuzz target for checkpoints that a stranger made, with right checksums. The first byte chooses
// the run, and the second what goes on from its checkpoint. Behind them are the facts of the
// manifest, the header of rank 0's file, and the first bytes of each tensor, with a zero byte
// between them.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/run/checkpoints.h"
#include "apps/run/saved_files.h"
#include "apps/setup/prepared.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/sealed_files.h"

namespace wisp {
namespace {

using Overrides = std::vector<std::string>;

constexpr int64_t kToldBytes = 128;  // of each tensor
constexpr int64_t kSteps = 4;        // before a checkpoint; an epoch has 3
constexpr int kWorkers = 2, kOtherWorkers = 3;

/// What goes on from a checkpoint.
enum class Way { same_workers, other_workers, evaluation };
constexpr int kWays = 3;

const char* const kImages = R"(
model = { name = "mlp", hidden = [4] }
data = { name = "synthetic", side = 8, train_count = 36, test_count = 12 }
)";
const char* const kText = R"(
model = { name = "lstm_lm", layers = 1, units = 3 }
data = { name = "text", window = 9 }
)";

/// The runs, which have all kinds of state.
const std::vector<Overrides>& runs() {
  static const std::vector<Overrides> all = {
      {"compression.method=oktopk", "compression.ratio=0.1", "compression.start_after=1"},
      {"compression.method=powersgd", "ema.decay=0.9"},
      {"compression.method=acpsgd", "optimizer.nesterov=true"},
      {"compression.method=dgc", "compression.ratio=0.05"},
      {"compression.method=gtopk", "compression.ratio=0.1", "schedule.kind=plateau",
       "data.train_count=48", "data.validation=12"},
      {"compression.method=onebit"},
      {"compression.method=onebit_adam", "optimizer.kind=adamw", "compression.freeze_step=1"},
      {"compression.method=variance", "compression.ratio=0.2", "train.accumulate=2"},
      {"compression.method=topk", "compression.ratio=0.1", "compression.feedback=ef21"},
      {"compression.method=natural", "compression.feedback=ef"},
      {"compression.method=fft"},
      {"compression.method=choco", "gossip.code=topk", "compression.ratio=0.1"},
      {"compression.method=dcd", "gossip.code=ef_signsgd"},
      {"compression.method=ecd", "gossip.code=fp16"},
      {"compression.method=local_sgd", "local_sgd.period=2"},
      {"text", "compression.method=dgc", "compression.ratio=0.1"},
  };
  return all;
}

/// A file of a checkpoint: what its tensors are, and their bytes.
struct File {
  SafetensorsHeader header;
  std::string data;
};

/// A run, prepared for both numbers of workers, and its checkpoint.
class Run {
 public:
  Run(const Overrides& overrides, const TempDir& dir)
      : same_(config(overrides, kWorkers, dir)), other_(config(overrides, kOtherWorkers, dir)) {
    for (Prepared* prepared : {&same_, &other_}) prepared->load();
    const std::string folder = dir / "valid";
    run_replicas(same_, [&](Replica& replica) {
      step(same_, replica, {}, kSteps);
      const int64_t steps = steps_of(same_, replica);
      Checkpoints(folder, {.keep = 0})
          .save(replica, {.epoch = kSteps / steps,
                          .in_epoch = kSteps % steps,
                          .steps_per_epoch = steps,
                          .step = kSteps,
                          .tally = replica.tally()});
    });
    const std::string checkpoint = checkpoint_path(folder, kSteps);
    facts_ = checkpoint_facts(checkpoint);
    files_["shared.safetensors"] = read(shared_file(checkpoint));
    for (int rank = 0; rank < kWorkers; ++rank)
      files_[concat("rank_", rank, ".safetensors")] = read(rank_file(checkpoint, rank));
    std::filesystem::remove_all(folder);
  }

  const CheckpointFacts& facts() const { return facts_; }
  const std::map<std::string, File>& files() const { return files_; }

  /// Goes on from the checkpoint in `folder`.
  void go_on(const std::string& folder, Way way) const {
    const Prepared& prepared = way == Way::other_workers ? other_ : same_;
    run_replicas(prepared, [&](Replica& replica) {
      const Checkpoints checkpoints(folder, {});
      if (way == Way::evaluation) {
        checkpoints.load_evaluated(replica);
        const std::unique_ptr<Loader> test = prepared.loader(Split::test, replica.rank());
        replica.evaluate_as_is(*test);
        return;
      }
      step(prepared, replica, checkpoints.load(replica).position, 2);
      static_cast<void>(replica.tally().targets());
    });
  }

 private:
  static Config config(const Overrides& overrides, int workers, const TempDir& dir) {
    Overrides changes = overrides;
    const bool text = changes.front() == "text";
    if (changes.front() != "compression.method=local_sgd")
      changes.push_back("compression.guard=false");  // small units are compressed too
    if (text) changes.front() = "data.path=" + (dir / "text");
    return Config::from_text(concat(text ? kText : kImages, "workers = ", workers, R"(
threads = 1
train.batch = 12
train.backend = "reference"
train.epochs = 9
timeout_s = 30.0
)"),
                             "fuzz.toml", changes);
  }
  static int64_t steps_of(const Prepared& prepared, const Replica& replica) {
    return prepared.loader(Split::train, replica.rank())->batches() / prepared.options().accumulate;
  }
  /// Runs `count` steps from a position on.
  static void step(const Prepared& prepared, Replica& replica, const Position& from,
                   int64_t count) {
    const std::unique_ptr<Loader> loader = prepared.loader(Split::train, replica.rank());
    const int64_t accumulate = prepared.options().accumulate;
    const int64_t steps = loader->batches() / accumulate;
    int64_t epoch = from.epoch, in_epoch = from.in_epoch;
    for (int64_t i = 0; i < count; ++i, ++in_epoch) {
      if (in_epoch >= steps) ++epoch, in_epoch = 0;
      if (i == 0 || in_epoch == 0) loader->start_epoch(epoch, in_epoch * accumulate);
      replica.step(from.step + i, static_cast<double>(epoch), [&] { return *loader->next(); });
    }
  }
  static File read(const std::string& path) {
    File file;
    for (const auto& [name, tensor] : tensors_in(path)) {
      const auto begin = std::ssize(file.data);
      file.data.append(reinterpret_cast<const char*>(tensor.raw()),
                       static_cast<size_t>(tensor.bytes()));
      file.header.tensors[name] = {safetensors_name(tensor.dtype()),
                                   {tensor.shape().begin(), tensor.shape().end()},
                                   begin,
                                   std::ssize(file.data)};
    }
    return file;
  }

  Prepared same_, other_;
  CheckpointFacts facts_;
  std::map<std::string, File> files_;
};

/// All runs, and a folder for the checkpoint of an input.
struct Runs {
  Runs() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += i % 3 == 0 ? "a b c d\n" : "d c a b\n";
    dir.write("text", text);
    for (const Overrides& overrides : runs()) all.emplace_back(overrides, dir);
  }
  TempDir dir;
  std::deque<Run> all;
};

const Runs& prepared_runs() {
  static const Runs runs;
  return runs;
}

/// Takes what is before the next zero byte, and the byte.
std::string take(std::string_view& input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string taken(input.substr(0, end));
  input.remove_prefix(std::min(end + 1, input.size()));
  return taken;
}

/// Facts as lines "NAME=VALUE".
CheckpointFacts facts_in(const std::string& text) {
  CheckpointFacts facts;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t end = line.find('=');
    if (end != line.npos) facts[line.substr(0, end)] = line.substr(end + 1);
  }
  return facts;
}

std::string text_of(const CheckpointFacts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += concat(name, "=", value, "\n");
  return text;
}

/// Writes a manifest with right checksums, without waiting for the disk.
void write_manifest(const TempDir& dir, const std::string& folder, const CheckpointFacts& facts,
                    const std::map<std::string, File>& files) {
  nlohmann::json manifest = {{"format", 1}, {"facts", facts}, {"files", nlohmann::json::object()}};
  for (const auto& [name, file] : files) {
    const std::string content = read_text(dir / (folder + name));
    manifest["files"][name] = {{"bytes", content.size()},
                               {"crc32c", checksum_text(crc32c(content.data(), content.size()))}};
  }
  manifest["crc32c"] = checksum_text(0);
  const std::string zeroed = manifest.dump();
  manifest["crc32c"] = checksum_text(crc32c(zeroed.data(), zeroed.size()));
  dir.write(folder + "manifest.json", manifest.dump());
}

}  // namespace

void fuzz(std::string_view input) {
  const Runs& prepared = prepared_runs();
  if (input.size() < 2) return;
  const Run& run = prepared.all[static_cast<uint8_t>(input[0]) % prepared.all.size()];
  const auto way = static_cast<Way>(static_cast<uint8_t>(input[1]) % kWays);
  input.remove_prefix(2);
  const CheckpointFacts facts = facts_in(take(input));
  const std::string header = take(input);
  std::map<std::string, File> files = run.files();
  for (auto& [name, file] : files) {
    for (const auto& [tensor, entry] : file.header.tensors) {
      const int64_t most = std::min(kToldBytes, entry.end - entry.begin);
      const std::string_view told = input.substr(0, static_cast<size_t>(most));
      std::copy(told.begin(), told.end(), file.data.begin() + entry.begin);
      input.remove_prefix(told.size());
    }
  }
  try {
    File& own = files.at("rank_0.safetensors");
    if (!header.empty()) own.header = SafetensorsHeader::parse(header, std::ssize(own.data));
    const std::string folder = concat("checkpoints/step_", kSteps, "/");
    for (const auto& [name, file] : files)
      write_sealed(prepared.dir, folder + name, file.header, file.data);
    write_manifest(prepared.dir, folder, facts, files);
    run.go_on(prepared.dir / "checkpoints", way);
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {  // facts that are no UTF-8
  }
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  const Runs& prepared = prepared_runs();
  for (size_t i = 0; i < prepared.all.size(); ++i) {
    const Run& run = prepared.all[i];
    std::string numbers;
    for (const auto& [name, file] : run.files()) {
      for (const auto& [tensor, entry] : file.header.tensors)
        numbers +=
            file.data.substr(static_cast<size_t>(entry.begin),
                             static_cast<size_t>(std::min(kToldBytes, entry.end - entry.begin)));
    }
    for (int way = 0; way < kWays; ++way) {
      const bool tells_header = way == static_cast<int>(Way::other_workers);
      std::string seed = {static_cast<char>(i), static_cast<char>(way)};
      seed += text_of(run.facts());
      seed += '\0';
      if (tells_header) seed += run.files().at("rank_0.safetensors").header.text();
      seed += '\0';
      seeds.push_back(seed + numbers);
    }
  }
  return seeds;
}

/// Replicas and their threads take most of it.
int64_t fuzz_memory(int64_t input_bytes) { return (64 << 20) + 100 * input_bytes; }

}  // namespace wisp
