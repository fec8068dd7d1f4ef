#include "data/images/photo_shards.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/checkpoint.h"
#include "core/io/checksum.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "photos.index";
constexpr const char* kFormat = "wisp photos 1";
constexpr int64_t kHeadBytes = 64;  // of a shard, before its first photo

std::string index_path(const std::string& folder) { return folder + "/" + kIndex; }

std::string shard_path(const std::string& folder, size_t shard) {
  char name[32];
  std::snprintf(name, sizeof name, "/photos-%05zu.shard", shard);
  return folder + name;
}

/// The first bytes of a shard. `id` is that of the index.
std::string head_of(const std::string& id, size_t shard) {
  std::string head = concat(kFormat, "\nindex ", id, "\nshard ", shard, "\n");
  head.resize(kHeadBytes, '\n');
  return head;
}

/// An identity of the photos: their names, classes and bytes.
std::string id_of(const std::string& names, const Tensor& labels, const Tensor& checksums) {
  uint64_t hash = hash_text(names);
  for (const Tensor* part : {&labels, &checksums})
    hash = hash_number(crc32c(part->raw(), static_cast<size_t>(part->bytes())), hash);
  return hash_digits(hash);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor tensor({std::ssize(values)}, std::is_same_v<T, int32_t> ? DType::i32 : DType::i64);
  std::memcpy(tensor.raw(), values.data(), static_cast<size_t>(tensor.bytes()));
  return tensor;
}

Tensor read(const CheckpointReader& index, const std::string& name, DType dtype) {
  const std::vector<int64_t>& extents = index.entry(name).extents;
  WISP_CHECK(extents.size() == 1, index.path(), ": ", name, " is ", index.entry(name).str(),
             ", expected a list");
  const Tensor tensor({extents[0]}, dtype);
  index.read(name, tensor);
  return tensor;
}

void read_at(int descriptor, std::string& into, int64_t offset) {
  for (size_t done = 0; done < into.size();) {
    const ssize_t count = pread(descriptor, into.data() + done, into.size() - done,
                                offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    WISP_CHECK(count >= 0, "cannot be read: ", std::strerror(errno));
    WISP_CHECK(count > 0, "ends at byte ", offset + static_cast<int64_t>(done));
    done += static_cast<size_t>(count);
  }
}

}  // namespace

bool has_shards(const std::string& folder) { return fs::exists(index_path(folder)); }

std::vector<std::string> classes_of_shards(const std::string& folder) {
  const CheckpointReader index(index_path(folder));
  return lines_of(index.metadata("classes"));
}

PhotoShards::PhotoShards(std::string folder) : folder_(std::move(folder)) {
  const CheckpointReader index(index_path(folder_));
  const std::string format = index.has_metadata("format") ? index.metadata("format") : "none";
  WISP_CHECK(format == kFormat, index.path(), ": the format is '", format, "', expected '", kFormat,
             "'");
  labels_ = read(index, "labels", DType::i32);
  shards_ = read(index, "shards", DType::i32);
  checksums_ = read(index, "checksums", DType::i32);
  offsets_ = read(index, "offsets", DType::i64);
  sizes_ = read(index, "sizes", DType::i64);
  name_ends_ = read(index, "name_ends", DType::i64);
  names_ = read(index, "names", DType::u8);
  const Tensor lengths = read(index, "lengths", DType::i64);
  check(std::ssize(lines_of(index.metadata("classes"))), lengths);
  const std::string names(reinterpret_cast<const char*>(names_.raw()),
                          static_cast<size_t>(names_.numel()));
  const std::string id = id_of(names, labels_, checksums_);
  for (int64_t shard = 0; shard < lengths.numel(); ++shard)
    open(static_cast<size_t>(shard), id, lengths.data<int64_t>()[shard]);
}

PhotoShards::~PhotoShards() {
  for (const int descriptor : descriptors_) close(descriptor);
}

/// Throws Error unless all lists fit each other, so that no later read leaves a shard.
void PhotoShards::check(int64_t classes, const Tensor& lengths) const {
  const std::string path = index_path(folder_);
  for (const Tensor* list : {&shards_, &checksums_, &offsets_, &sizes_, &name_ends_})
    WISP_CHECK(list->numel() == count(), path, ": lists of ", list->numel(), " and of ", count(),
               " photos");
  int64_t name_end = 0;
  for (int64_t i = 0; i < count(); ++i) {
    const int64_t offset = offsets_.data<int64_t>()[i], size = sizes_.data<int64_t>()[i];
    const int64_t shard = shards_.data<int32_t>()[i], end = name_ends_.data<int64_t>()[i];
    const bool in_shard = shard >= 0 && shard < lengths.numel() && size >= 0 &&
                          offset >= kHeadBytes && offset <= lengths.data<int64_t>()[shard] - size;
    const bool named = end > name_end && end <= names_.numel();
    WISP_CHECK(in_shard && named && label(i) >= 0 && label(i) < classes, path, ": photo ", i,
               " has bytes, a name or a class that do not exist");
    name_end = end;
  }
}

void PhotoShards::open(size_t shard, const std::string& id, int64_t length) {
  const std::string path = shard_path(folder_, shard);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  WISP_CHECK(descriptor >= 0, path, ": cannot be opened: ", std::strerror(errno));
  descriptors_.push_back(descriptor);
  const int64_t found = naming(path, [&] { return file_bytes(path); });
  std::string head(kHeadBytes, '\0');
  naming(path, [&] { read_at(descriptor, head, 0); });
  WISP_CHECK(head == head_of(id, shard), path, ": not the shard ", shard, " of ",
             index_path(folder_), ", expected one that `wisp pack` wrote together with it");
  WISP_CHECK(found == length, path, ": ", found, " bytes, the index says ", length);
}

std::string PhotoShards::name(int64_t photo) const {
  const auto* ends = name_ends_.data<int64_t>();
  const int64_t begin = photo == 0 ? 0 : ends[photo - 1];
  return {reinterpret_cast<const char*>(names_.raw()) + begin,
          static_cast<size_t>(ends[photo] - begin)};
}

std::string_view PhotoShards::bytes(int64_t photo, std::string& buffer) const {
  const auto shard = static_cast<size_t>(shards_.data<int32_t>()[photo]);
  buffer.resize(static_cast<size_t>(sizes_.data<int64_t>()[photo]));
  naming(shard_path(folder_, shard), [&] {
    read_at(descriptors_[shard], buffer, offsets_.data<int64_t>()[photo]);
    WISP_CHECK(crc32c(buffer.data(), buffer.size()) ==
                   static_cast<uint32_t>(checksums_.data<int32_t>()[photo]),
               "wrong checksum");
  });
  return buffer;
}

PhotoShardWriter::PhotoShardWriter(std::string folder, std::vector<std::string> classes,
                                   int64_t shard_bytes)
    : folder_(std::move(folder)), classes_(std::move(classes)), shard_bytes_(shard_bytes) {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  WISP_CHECK(!failure, folder_, ": cannot be made: ", failure.message());
  WISP_CHECK(!has_shards(folder_), index_path(folder_),
             " is there already; pack into another folder, or remove it and its shards");
}

void PhotoShardWriter::add(const std::string& name, int32_t label, std::string_view bytes) {
  if (shards_.empty() || lengths_.back() >= shard_bytes_) {
    shards_.push_back(std::make_unique<WholeFile>(shard_path(folder_, shards_.size())));
    shards_.back()->write(std::string(kHeadBytes, '\n'));
    lengths_.push_back(kHeadBytes);
  }
  shards_.back()->write(bytes);
  shard_of_.push_back(static_cast<int32_t>(shards_.size() - 1));
  labels_.push_back(label);
  checksums_.push_back(static_cast<int32_t>(crc32c(bytes.data(), bytes.size())));
  offsets_.push_back(lengths_.back());
  sizes_.push_back(std::ssize(bytes));
  lengths_.back() += std::ssize(bytes);
  names_ += name;
  name_ends_.push_back(std::ssize(names_));
}

void PhotoShardWriter::finish() {
  WISP_CHECK(!shards_.empty(), folder_, ": no photos to pack");
  CheckpointWriter index;
  const Tensor labels = tensor_of(labels_), checksums = tensor_of(checksums_);
  Tensor names({std::ssize(names_)}, DType::u8);
  std::memcpy(names.raw(), names_.data(), names_.size());
  index.metadata("format", kFormat);
  index.metadata("classes", joined(classes_));
  index.add("labels", labels);
  index.add("checksums", checksums);
  index.add("names", names);
  index.add("shards", tensor_of(shard_of_));
  index.add("offsets", tensor_of(offsets_));
  index.add("sizes", tensor_of(sizes_));
  index.add("name_ends", tensor_of(name_ends_));
  index.add("lengths", tensor_of(lengths_));
  const std::string id = id_of(names_, labels, checksums);
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard]->write_at(0, head_of(id, shard));
    shards_[shard]->finish();
  }
  index.write(index_path(folder_));
}

}  // namespace wisp
