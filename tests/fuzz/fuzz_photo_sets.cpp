// Fuzz target for what photos are found by: the index of shards, or the list of a folder's classes.
// The first byte chooses the index if it is even.
#include "data/photos/photo_files.h"
#include "data/photos/photo_shards.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

const std::vector<std::string> kClasses = {"ants", "bees", "wasps"};

void write_shards(const std::string& folder) {
  PhotoShardWriter writer(folder, kClasses, 20);
  for (int i = 0; i < 4; ++i)
    writer.add(std::string(1, static_cast<char>('a' + i)), i % 3,
               std::string(static_cast<size_t>(5 * i), 'x'));
  writer.finish();
}

/// A folder of shards, whose index an input replaces, and one with two photos.
struct Folders {
  Folders() {
    write_shards(dir / "shards");
    dir.write("val/a.jpg", "");
    dir.write("val/b.jpg", "");
  }
  TempDir dir;
};

void read_index(const Folders& folders, const std::string& index) {
  folders.dir.write("shards/photos.index", index);
  classes_of_shards(folders.dir / "shards");
  const PhotoShards shards(folders.dir / "shards");
  std::string buffer;
  for (int64_t i = 0; i < shards.count(); ++i) {
    if (shards.label(i) < 0 || shards.label(i) >= 3) throw Finding("a label that is no class");
    shards.name(i);
    try {
      shards.bytes(i, buffer);
    } catch (const Error&) {  // a wrong checksum
    }
  }
}

void read_list(const Folders& folders, const std::string& list) {
  const FoundPhotos found =
      photos_by_list(folders.dir / "val", folders.dir.write("list", list), kClasses);
  if (found.photos->count() > 2) throw Finding("more photos than files");
  for (int64_t i = 0; i < found.photos->count(); ++i) {
    const int32_t label = found.photos->label(i);
    if (label < 0 || label >= 3) throw Finding("a label that is no class");
  }
}

}  // namespace

void fuzz(std::string_view input) {
  static const Folders folders;
  if (input.empty()) return;
  const std::string content(input.substr(1));
  try {
    if (static_cast<uint8_t>(input.front()) % 2 == 0) {
      read_index(folders, content);
    } else {
      read_list(folders, content);
    }
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  write_shards(dir / "shards");
  return {concat("0", read_text(dir / "shards/photos.index")), "1a.jpg ants\nb.jpg 2\n",
          "1ImageId,PredictionString\na,ants 1 2 3 4\n"};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 17) + 100 * input_bytes; }

}  // namespace wisp
