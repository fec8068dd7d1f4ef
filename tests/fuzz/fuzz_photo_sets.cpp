// Fuzz target for what photos are found by. The first byte chooses: the file of an index ('0'), a
// list of a folder's classes ('1'), the numbers of an index ('2'), or the header of an index, a
// zero byte and its data ('3'). The last two get right checksums.
#include <algorithm>
#include <cstring>
#include <map>

#include "core/io/checkpoint.h"
#include "data/photos/photo_list.h"
#include "data/photos/photo_shards.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/sealed_files.h"

namespace wisp {
namespace {

const std::vector<std::string> kClasses = {"ants", "bees", "wasps"};

void write_shards(const std::string& folder) {
  PhotoShardWriter writer(folder, kClasses, "four photos", 20);
  for (int i = 0; i < 4; ++i)
    writer.add(std::string(1, static_cast<char>('a' + i)), i % 3,
               std::string(static_cast<size_t>(5 * i), 'x'));
  writer.finish();
}

/// A folder of shards, whose index an input replaces, its valid index, and a folder with two
/// photos.
struct Folders {
  Folders() {
    write_shards(dir / "shards");
    dir.write("valid.index", read_text(dir / "shards/photos.index"));
    dir.write("val/a.jpg", "");
    dir.write("val/b.jpg", "");
  }
  TempDir dir;
};

constexpr const char* kLists[] = {"shards", "offsets", "sizes", "name_ends", "lengths", "labels"};

/// The lists of an index by name.
std::map<std::string, Tensor> lists_of(const CheckpointReader& index) {
  std::map<std::string, Tensor> lists;
  for (const std::string& name : index.names()) {
    const SafetensorsEntry& entry = index.entry(name);
    const Tensor list({entry.extents[0]}, safetensors_dtype(entry.dtype).value());
    index.read(name, list);
    lists.emplace(name, list);
  }
  return lists;
}

/// The numbers of an index, list by list.
std::string numbers_of(const std::string& index) {
  const std::map<std::string, Tensor> lists = lists_of(CheckpointReader(index));
  std::string numbers;
  for (const char* name : kLists) {
    const Tensor& list = lists.at(name);
    numbers.append(reinterpret_cast<const char*>(list.raw()), static_cast<size_t>(list.bytes()));
  }
  return numbers;
}

/// The index `valid` with other numbers; those that are missing stay.
void write_numbers(const std::string& valid, std::string_view numbers, const std::string& index) {
  const CheckpointReader reader(valid);
  const std::map<std::string, Tensor> lists = lists_of(reader);
  for (const char* name : kLists) {
    const Tensor& list = lists.at(name);
    const size_t count = std::min(numbers.size(), static_cast<size_t>(list.bytes()));
    std::memcpy(list.raw(), numbers.data(), count);
    numbers.remove_prefix(count);
  }
  CheckpointWriter writer;
  for (const char* key : {"format", "classes", "origin"})
    writer.metadata(key, reader.metadata(key));
  for (const auto& [name, list] : lists) writer.add(name, list);
  writer.write(index);
}

/// Reads the shards of an index. Their classes are counted as wisp::find_photos does.
void read_shards(const Folders& folders) {
  const auto classes = std::ssize(classes_of_shards(folders.dir / "shards"));
  const PhotoShards shards(folders.dir / "shards");
  std::string buffer;
  for (int64_t i = 0; i < shards.count(); ++i) {
    if (shards.label(i) < 0 || shards.label(i) >= classes)
      throw Finding("a label that is no class");
    shards.name(i);
    try {
      shards.bytes(i, buffer);
    } catch (const Error&) {  // a wrong checksum
    }
  }
}

/// An index's header without checksums, a zero byte, and its data.
std::string content_of(const std::string& index) {
  const CheckpointReader reader(index);
  SafetensorsHeader header;
  std::string data;
  for (const char* key : {"format", "classes", "origin"})
    header.metadata[key] = reader.metadata(key);
  for (const auto& [name, list] : lists_of(reader)) {
    const auto begin = std::ssize(data);
    data.append(reinterpret_cast<const char*>(list.raw()), static_cast<size_t>(list.bytes()));
    header.tensors[name] = {reader.entry(name).dtype, {list.numel()}, begin, std::ssize(data)};
  }
  return header.text() + '\0' + data;
}

/// Writes an index of this content with right checksums.
void write_content(const TempDir& dir, const std::string& content, const std::string& index) {
  const size_t end = std::min(content.find('\0'), content.size());
  const std::string data = content.substr(std::min(end + 1, content.size()));
  write_sealed(dir, index, SafetensorsHeader::parse(content.substr(0, end), std::ssize(data)),
               data);
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
    switch (static_cast<uint8_t>(input.front()) % 4) {
      case 0:
        folders.dir.write("shards/photos.index", content);
        read_shards(folders);
        break;
      case 1:
        read_list(folders, content);
        break;
      case 2:
        write_numbers(folders.dir / "valid.index", content, folders.dir / "shards/photos.index");
        read_shards(folders);
        break;
      default:
        write_content(folders.dir, content, "shards/photos.index");
        read_shards(folders);
    }
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  write_shards(dir / "shards");
  return {concat("0", read_text(dir / "shards/photos.index")), "1a.jpg ants\nb.jpg 2\n",
          "1ImageId,PredictionString\na,ants 1 2 3 4\n",
          concat("2", numbers_of(dir / "shards/photos.index")),
          concat("3", content_of(dir / "shards/photos.index"))};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 17) + 100 * input_bytes; }

}  // namespace wisp
