#include "data/photos/photo_shards.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/checkpoint.h"
#include "core/io/checksum.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "photos.index";
constexpr const char* kFormat = "wisp photos 1";
constexpr int64_t kHeadBytes = 64;  // of a shard, before its first photo

std::string index_path(const std::string& folder) { return folder + "/" + kIndex; }

std::string lock_path(const std::string& folder) { return folder + "/photos.lock"; }

std::string shard_path(const std::string& folder, size_t shard) {
  char name[32];
  std::snprintf(name, sizeof name, "/photos-%05zu.shard", shard);
  return folder + name;
}

/// Whether a name is that of a shard.
bool is_shard(const std::string& name) {
  size_t shard = 0;
  return std::sscanf(name.c_str(), "photos-%zu", &shard) == 1 &&
         shard_path("", shard) == "/" + name;
}

/// The first bytes of a shard. `id` is that of the index.
std::string head_of(const std::string& id, size_t shard) {
  std::string head = concat(kFormat, "\nindex ", id, "\nshard ", shard, "\n");
  head.resize(kHeadBytes, '\n');
  return head;
}

/// A hash of the photos' names, classes and bytes.
uint64_t digest_of(const std::string& names, const Tensor& labels, const Tensor& checksums) {
  uint64_t hash = hash_text(names);
  for (const Tensor* part : {&labels, &checksums})
    hash = hash_number(crc32c(part->raw(), static_cast<size_t>(part->bytes())), hash);
  return hash;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string_view rest = text; !rest.empty();) lines.emplace_back(take_line(rest));
  return lines;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  Tensor tensor({std::ssize(values)}, dtype_of<T>::value);
  std::memcpy(tensor.raw(), values.data(), static_cast<size_t>(tensor.bytes()));
  return tensor;
}

Tensor read(const CheckpointReader& index, const std::string& name, DType dtype) {
  WISP_CHECK(index.entry(name).extents.size() == 1, index.path(), ": ", name, " is ",
             index.entry(name).str(), ", expected a list");
  return index.read(name, dtype);
}

}  // namespace

bool has_shards(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(index_path(folder), ignored);
}

std::vector<std::string> classes_of_shards(const std::string& folder) {
  const CheckpointReader index(index_path(folder));
  return lines_of(index.metadata("classes"));
}

std::string origin_of_shards(const std::string& folder) {
  const CheckpointReader index(index_path(folder));
  return index.has_metadata("origin") ? index.metadata("origin") : "photos of an earlier version";
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
  const Tensor lengths = read(index, "lengths", DType::i64);
  const Tensor names = read(index, "names", DType::u8);
  names_.assign(reinterpret_cast<const char*>(names.raw()), static_cast<size_t>(names.numel()));
  check(std::ssize(lines_of(index.metadata("classes"))), lengths);
  digest_ = digest_of(names_, labels_, checksums_);
  for (int64_t shard = 0; shard < lengths.numel(); ++shard)
    open(static_cast<size_t>(shard), lengths.data<int64_t>()[shard]);
}

/// Throws Error unless all lists fit each other, so that no later read leaves a shard.
void PhotoShards::check(int64_t classes, const Tensor& lengths) const {
  const std::string path = index_path(folder_);
  for (const Tensor* list : {&shards_, &checksums_, &offsets_, &sizes_, &name_ends_})
    WISP_CHECK(list->numel() == count(), path, ": lists of ", list->numel(), " and of ", count(),
               " photos");
  for (int64_t shard = 0; shard < lengths.numel(); ++shard)
    WISP_CHECK(lengths.data<int64_t>()[shard] >= kHeadBytes, path, ": shard ", shard, " has ",
               lengths.data<int64_t>()[shard], " bytes, expected at least ", kHeadBytes);
  int64_t name_end = 0;
  for (int64_t i = 0; i < count(); ++i) {
    const int64_t offset = offsets_.data<int64_t>()[i], size = sizes_.data<int64_t>()[i];
    const int64_t shard = shards_.data<int32_t>()[i], end = name_ends_.data<int64_t>()[i];
    WISP_CHECK(shard >= 0 && shard < lengths.numel(), path, ": photo ", i, " is in shard ", shard,
               " of ", lengths.numel());
    WISP_CHECK(size >= 0 && offset >= kHeadBytes && offset <= lengths.data<int64_t>()[shard] - size,
               path, ": photo ", i, " has ", size, " bytes at byte ", offset, ", which shard ",
               shard, " does not have");
    WISP_CHECK(end > name_end && end <= std::ssize(names_), path, ": photo ", i,
               " has no name of its own");
    WISP_CHECK(label(i) >= 0 && label(i) < classes, path, ": photo ", i, " is of class ", label(i),
               " of ", classes);
    name_end = end;
  }
}

void PhotoShards::open(size_t shard, int64_t length) {
  const RandomAccessFile& file = files_.emplace_back(shard_path(folder_, shard));
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), kHeadBytes, 0);
  WISP_CHECK(head == head_of(hash_digits(digest_), shard), file.path(), ": not the shard ", shard,
             " of ", index_path(folder_), ", expected one that `wisp pack` wrote together with it");
  WISP_CHECK(file.bytes() == length, file.path(), ": ", file.bytes(), " bytes, the index says ",
             length);
}

std::string PhotoShards::name(int64_t photo) const {
  const auto* ends = name_ends_.data<int64_t>();
  const int64_t begin = photo == 0 ? 0 : ends[photo - 1];
  return names_.substr(static_cast<size_t>(begin), static_cast<size_t>(ends[photo] - begin));
}

std::string_view PhotoShards::bytes(int64_t photo, std::string& buffer) const {
  const RandomAccessFile& file = files_[static_cast<size_t>(shards_.data<int32_t>()[photo])];
  const int64_t size = sizes_.data<int64_t>()[photo];
  buffer.resize(static_cast<size_t>(size));
  file.read(buffer.data(), size, offsets_.data<int64_t>()[photo]);
  const uint32_t checksum = crc32c(buffer.data(), buffer.size());
  WISP_CHECK(checksum == static_cast<uint32_t>(checksums_.data<int32_t>()[photo]), file.path(),
             ": wrong checksum");
  return buffer;
}

PhotoShardWriter::PhotoShardWriter(std::string folder, std::vector<std::string> classes,
                                   std::string origin, int64_t shard_bytes)
    : folder_(std::move(folder)),
      classes_(std::move(classes)),
      origin_(std::move(origin)),
      shard_bytes_(shard_bytes) {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  WISP_CHECK(!failure, folder_, ": cannot be made: ", failure.message());
  for (const std::string& name : classes_) {
    naming(concat(folder_, ": class '", name, "'"), [&] {
      check_utf8(name);
      WISP_CHECK(name.find('\n') == name.npos, "the name has a line end");
    });
  }
  lock_.emplace(lock_path(folder_));
  if (has_shards(folder_)) {  // not before: another writer may have finished meanwhile
    fs::remove(lock_path(folder_), failure);
    throw Error(index_path(folder_) +
                " is there already; pack into another folder, or remove it and its shards");
  }
  remove_shards();
}

PhotoShardWriter::~PhotoShardWriter() {
  if (!lock_) return;
  shards_.clear();
  remove_shards();
  std::error_code ignored;
  fs::remove(lock_path(folder_), ignored);
}

void PhotoShardWriter::remove_shards() const {
  std::error_code ignored;
  std::vector<fs::path> shards;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename();
    if (is_shard(name)) shards.push_back(entry.path());
  }
  for (const fs::path& shard : shards) fs::remove(shard, ignored);
}

void PhotoShardWriter::add(const std::string& name, int32_t label, std::string_view bytes) {
  if (shards_.empty() || lengths_.back() >= shard_bytes_) {
    shards_.push_back(std::make_unique<OutputFile>(shard_path(folder_, shards_.size()),
                                                   OutputFile::Mode::replace));
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
  std::string classes;
  for (const std::string& name : classes_) classes += name + "\n";
  index.metadata("format", kFormat);
  index.metadata("classes", classes);
  index.metadata("origin", origin_);
  const Tensor labels = tensor_of(labels_), checksums = tensor_of(checksums_);
  Tensor names({std::ssize(names_)}, DType::u8);
  std::memcpy(names.raw(), names_.data(), names_.size());
  index.add("labels", labels);
  index.add("checksums", checksums);
  index.add("names", names);
  index.add("shards", tensor_of(shard_of_));
  index.add("offsets", tensor_of(offsets_));
  index.add("sizes", tensor_of(sizes_));
  index.add("name_ends", tensor_of(name_ends_));
  index.add("lengths", tensor_of(lengths_));
  const std::string id = hash_digits(digest_of(names_, labels, checksums));
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard]->write_at(0, head_of(id, shard));
    shards_[shard]->sync();
  }
  index.write(index_path(folder_));
  std::error_code ignored;
  fs::remove(lock_path(folder_), ignored);
  lock_.reset();
}

}  // namespace wisp
