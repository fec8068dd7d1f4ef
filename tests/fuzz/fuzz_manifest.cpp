// Fuzz target for the manifest of a checkpoint.
#include <filesystem>

#include "core/io/checkpoint_directory.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

/// A checkpoint with these files.
std::string publish(const TempDir& dir, const CheckpointFacts& facts) {
  prepare_directory(dir / "c.tmp");
  dir.write("c.tmp/rank0.safetensors", "weights");
  dir.write("c.tmp/rank1.safetensors", "");
  publish_directory(dir / "c.tmp", dir / "c", facts);
  return dir / "c";
}

/// The word after `before` in `text`.
std::string word_behind(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  if (at == text.npos) return "";
  const size_t begin = at + before.size();
  return text.substr(begin, text.find(',', begin) - begin);
}

}  // namespace

void fuzz(std::string_view input) {
  static const TempDir dir;
  static const std::string checkpoint = publish(dir, {});
  std::string manifest(input);
  const auto read = [&] {
    dir.write("c/manifest.json", manifest);
    return error_of([&] {
      checkpoint_facts(checkpoint);
      verify_checkpoint(checkpoint);
    });
  };
  // a manifest written by hand may have the right checksum, so a second read corrects it
  const std::string complaint = read();
  const std::string right = word_behind(complaint, "its checksum is ");
  const std::string said = word_behind(complaint, ", it says ");
  const size_t place = said.empty() ? manifest.npos : manifest.find('"' + said + '"');
  if (place == manifest.npos) return;
  manifest.replace(place + 1, said.size(), right);
  read();
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  std::vector<std::string> seeds;
  for (const CheckpointFacts& facts :
       {CheckpointFacts{}, CheckpointFacts{{"step", "120"}, {"method", "dgc"}}})
    seeds.push_back(read_text(publish(dir, facts) + "/manifest.json"));
  return seeds;
}

/// Includes the block through which files are read.
int64_t fuzz_memory(int64_t input_bytes) { return (2 << 20) + 100 * input_bytes; }

}  // namespace wisp
