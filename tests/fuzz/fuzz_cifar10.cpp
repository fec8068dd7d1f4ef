// Fuzz target for the files of CIFAR-10. The first byte chooses the split, and the number of
// records that a file should have.
#include "data/images/cifar10.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/fake_cifar.h"

namespace wisp {
namespace {

constexpr int64_t kMaxRecords = 3;

/// A folder whose six files are hard links to one.
struct Folder {
  Folder() {
    dir.write(kCifarFiles[0], "");
    for (size_t i = 1; i < kCifarFiles.size(); ++i)
      std::filesystem::create_hard_link(dir / kCifarFiles[0], dir / kCifarFiles[i]);
  }
  TempDir dir;
};

void check(const ImageSet& set) {
  for (int64_t i = 0; i < set.count(); ++i) {
    const int32_t label = set.labels.data<int32_t>()[i];
    if (label < 0 || label >= set.classes) throw Finding("cifar10: a label that is no class");
  }
}

}  // namespace

void fuzz(std::string_view input) {
  static const Folder folder;
  if (input.empty()) return;
  const auto choice = static_cast<uint8_t>(input.front());
  const std::string content(input.substr(1));
  const Split split = choice % 2 ? Split::train : Split::test;
  folder.dir.write(kCifarFiles[0], content);
  try {
    check(read_cifar10(find_cifar10(folder.dir.path()), split, 1 + choice / 2 % kMaxRecords));
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (int64_t records = 1; records <= kMaxRecords; ++records) {
    std::string content(1, static_cast<char>(2 * (records - 1) + records % 2));
    for (int64_t record = 0; record < records; ++record) content += fake_record(0, record);
    seeds.push_back(content);
  }
  return seeds;
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 17) + 4 * input_bytes; }

}  // namespace wisp
