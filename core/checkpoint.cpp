#include "core/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/checksum.h"
#include "core/output_file.h"

namespace wisp {
namespace {

using Json = nlohmann::json;  // keys sorted: bytes depend on content alone

constexpr const char* kMetadata = "__metadata__";
constexpr const char* kHeaderChecksum = "crc32c";
constexpr const char* kTensorChecksum = "crc32c.";  // and the tensor's name
constexpr int64_t kMaxHeaderBytes = 100'000'000;    // safetensors' own limit

const char* safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
    case DType::u32:
      return "U32";
  }
  throw Error(concat("checkpoint: no safetensors name for dtype ", name_of(dtype)));
}

std::vector<int64_t> extents_of(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int i = 0; i < shape.rank(); ++i) extents.push_back(shape[i]);
  return extents;
}

std::string text_of(const std::string& dtype, const std::vector<int64_t>& extents) {
  return dtype + " " + Json(extents).dump();
}

std::string checksum_of(const std::byte* data, int64_t bytes) {
  return checksum_text(crc32c(data, static_cast<size_t>(bytes)));
}

/// Sets the header's own checksum, taken with zeros in its place, and returns the text.
std::string sealed(Json& header) {
  Json& checksum = header[kMetadata][kHeaderChecksum];
  checksum = checksum_text(0);
  const std::string text = header.dump();
  checksum = checksum_text(crc32c(text.data(), text.size()));
  return header.dump();
}

/// Largest elements first, so that each tensor is aligned; then by name.
std::vector<const std::pair<const std::string, Tensor>*> file_order(
    const std::map<std::string, Tensor>& tensors) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  return order;
}

}  // namespace

void CheckpointWriter::add(const std::string& name, const Tensor& tensor) {
  WISP_CHECK(name != kMetadata, "checkpoint: a tensor cannot be named ", name);
  WISP_CHECK(tensor.defined(), "checkpoint: ", name, " is undefined");
  WISP_CHECK(!tensor.device().is_cuda(), "checkpoint: ", name, " is not on the host");
  WISP_CHECK(tensors_.emplace(name, tensor).second, "checkpoint: two tensors are named ", name);
}

void CheckpointWriter::metadata(const std::string& key, const std::string& value) {
  const bool ours = key.rfind(kHeaderChecksum, 0) == 0;
  WISP_CHECK(!ours, "checkpoint: metadata ", key, ": names that start with ", kHeaderChecksum,
             " are for checksums");
  metadata_[key] = value;
}

void CheckpointWriter::write(const std::string& path) const {
  const auto order = file_order(tensors_);
  Json header;
  header[kMetadata] = metadata_;
  int64_t offset = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    header[name] = {{"dtype", safetensors_name(tensor.dtype())},
                    {"shape", extents_of(tensor.shape())},
                    {"data_offsets", {offset, offset + tensor.bytes()}}};
    header[kMetadata][kTensorChecksum + name] = checksum_of(tensor.raw(), tensor.bytes());
    offset += tensor.bytes();
  }
  std::string text = sealed(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();  // little-endian, as the machines we run on

  const std::string temporary = path + ".tmp";
  try {
    OutputFile file(temporary, OutputFile::Mode::replace);
    file.write(reinterpret_cast<const std::byte*>(&length), sizeof length);
    file.write(text);
    for (const auto* entry : order)
      file.write(entry->second.raw(), static_cast<size_t>(entry->second.bytes()));
    file.sync();
    rename_path(temporary, path);
  } catch (const Error&) {
    unlink(temporary.c_str());
    throw;
  }
  sync_directory(parent_directory(path));
}

CheckpointReader::CheckpointReader(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  WISP_CHECK(descriptor_ >= 0, path_, ": cannot be opened: ", std::strerror(errno));
  try {
    struct stat status {};
    WISP_CHECK(fstat(descriptor_, &status) == 0, path_, ": cannot be read: ", std::strerror(errno));
    read_header(status.st_size);
  } catch (const Json::exception& error) {
    close(descriptor_);
    throw Error(concat(path_, ": the header is damaged: ", error.what()));
  } catch (const Error&) {
    close(descriptor_);
    throw;
  }
}

CheckpointReader::~CheckpointReader() { close(descriptor_); }

void CheckpointReader::read_bytes(void* into, int64_t bytes, int64_t offset) const {
  auto* next = static_cast<std::byte*>(into);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, next, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    WISP_CHECK(got >= 0, path_, ": cannot be read: ", std::strerror(errno));
    WISP_CHECK(got > 0, path_, ": ends at byte ", offset, ", ", bytes, " bytes early");
    next += got;
    bytes -= got;
    offset += got;
  }
}

void CheckpointReader::read_header(int64_t file_bytes) {
  uint64_t length = 0;
  read_bytes(&length, sizeof length, 0);
  const int64_t room = std::min(file_bytes - 8, kMaxHeaderBytes);
  WISP_CHECK(length <= static_cast<uint64_t>(room), path_, ": the header has ", length,
             " bytes, the file has room for ", room);
  std::string text(length, '\0');
  read_bytes(text.data(), static_cast<int64_t>(length), 8);
  Json header = Json::parse(text);
  const std::string said = header.at(kMetadata).at(kHeaderChecksum);
  sealed(header);
  const std::string found = header[kMetadata][kHeaderChecksum];
  WISP_CHECK(said == found, path_, ": the header is damaged: its checksum is ", found, ", it says ",
             said);

  metadata_ = header[kMetadata].get<std::map<std::string, std::string>>();
  const int64_t data = 8 + static_cast<int64_t>(length);
  int64_t end = data;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) continue;
    const auto offsets = entry.at("data_offsets").get<std::array<int64_t, 2>>();
    tensors_[name] = {entry.at("dtype"), entry.at("shape"), data + offsets[0], data + offsets[1],
                      metadata(kTensorChecksum + name)};
    end = std::max(end, data + offsets[1]);
  }
  WISP_CHECK(end == file_bytes, path_, ": the file has ", file_bytes, " bytes, expected ", end);
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

void CheckpointReader::read(const std::string& name, const Tensor& into) const {
  const auto found = tensors_.find(name);
  WISP_CHECK(found != tensors_.end(), path_, ": has no tensor ", name);
  const Entry& entry = found->second;
  const std::string wanted = text_of(safetensors_name(into.dtype()), extents_of(into.shape()));
  const std::string given = text_of(entry.dtype, entry.extents);
  WISP_CHECK(given == wanted, path_, ": ", name, " is ", given, ", expected ", wanted);
  WISP_CHECK(entry.end - entry.begin == into.bytes(), path_, ": ", name, " has ",
             entry.end - entry.begin, " bytes, ", wanted, " needs ", into.bytes());
  WISP_CHECK(!into.device().is_cuda(), path_, ": ", name, " cannot be read to a device");
  read_bytes(into.raw(), into.bytes(), entry.begin);
  const std::string checksum = checksum_of(into.raw(), into.bytes());
  WISP_CHECK(checksum == entry.checksum, path_, ": ", name, " is damaged: its checksum is ",
             checksum, ", expected ", entry.checksum);
}

const std::string& CheckpointReader::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  WISP_CHECK(found != metadata_.end(), path_, ": has no metadata ", key);
  return found->second;
}

}  // namespace wisp
