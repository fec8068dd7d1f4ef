#include "core/io/checkpoint.h"

#include <algorithm>
#include <functional>
#include <span>

#include "core/base/number.h"
#include "core/io/checksum.h"

namespace wisp {
namespace {

constexpr const char* kHeaderChecksum = "crc32c";
constexpr const char* kTensorChecksum = "crc32c.";  // followed by the tensor's name

/// The header's checksum, computed with zeros in its own place.
std::string seal_of(SafetensorsHeader header) {
  header.metadata[kHeaderChecksum] = checksum_text(0);
  const std::string text = header.text();
  return checksum_text(crc32c(text.data(), text.size()));
}

void check_seal(const SafetensorsHeader& header, CheckpointReader::Checksums checksums) {
  const bool sealed = header.metadata.contains(kHeaderChecksum);
  if (checksums == CheckpointReader::Checksums::optional && !sealed) return;
  WISP_CHECK(sealed, "there is no checksum in the header");
  const std::string& said = header.metadata.at(kHeaderChecksum);
  const std::string found = seal_of(header);
  WISP_CHECK(said == found, "the header is damaged: its checksum is ", found, ", it says ", said);
  for (const auto& [name, entry] : header.tensors)
    WISP_CHECK(header.metadata.contains(kTensorChecksum + name), "there is no checksum of ", name);
}

/// Orders tensors by falling element size, so that each is aligned, then by name. The checksums are
/// zeros.
SafetensorsHeader header_of(const std::map<std::string, CheckpointStream::Entry>& tensors,
                            const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, CheckpointStream::Entry>> order(tensors.begin(),
                                                                     tensors.end());
  std::ranges::stable_sort(order, std::greater(),
                           [](const auto& named) { return size_of(named.second.dtype); });
  SafetensorsHeader header;
  header.metadata = metadata;
  int64_t offset = 0;
  for (const auto& [name, entry] : order) {
    const int64_t end = offset + entry.shape.numel() * size_of(entry.dtype);
    header.tensors[name] = {
        safetensors_name(entry.dtype), {entry.shape.begin(), entry.shape.end()}, offset, end};
    header.metadata[kTensorChecksum + name] = checksum_text(0);
    offset = end;
  }
  header.metadata[kHeaderChecksum] = checksum_text(0);
  return header;
}

/// The header as written to the file: its length, then its text.
std::string text_of(const SafetensorsHeader& header, const std::string& path) {
  std::string text = header.text();
  WISP_CHECK(std::ssize(text) <= kMaxSafetensorsHeader, path, ": ", header.tensors.size(),
             " tensors have a header of ", text.size(), " bytes, which no reader takes, expected ",
             kMaxSafetensorsHeader, " at most: a model of fewer layers can be saved");
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return bytes_of(uint64_t{text.size()}) + text;
}

}  // namespace

CheckpointStream::CheckpointStream(std::string path, const std::map<std::string, Entry>& tensors,
                                   const std::map<std::string, std::string>& metadata)
    : header_(header_of(tensors, metadata)),
      file_(std::move(path), Unread::awaited),
      data_(std::ssize(text_of(header_, file_.path()))) {}

void CheckpointStream::append(const std::string& name, const Tensor& part) {
  const auto entry = header_.tensors.find(name);
  WISP_CHECK(entry != header_.tensors.end(), file_.path(), ": was told of no tensor ", name);
  const auto& [dtype, extents, begin, end] = entry->second;
  WISP_CHECK(dtype == safetensors_name(part.dtype()), file_.path(), ": ", name, " is ", dtype,
             ", a part of it is ", safetensors_name(part.dtype()));
  auto& [bytes, checksum] = progress_[name];
  WISP_CHECK(bytes + part.bytes() <= end - begin, file_.path(), ": ", name, " has room for ",
             end - begin, " bytes, but has ", bytes, " and gets ", part.bytes(), " more");
  file_.write_at(data_ + begin + bytes,
                 {reinterpret_cast<const char*>(part.raw()), static_cast<size_t>(part.bytes())});
  checksum = crc32c(part.raw(), static_cast<size_t>(part.bytes()), checksum);
  bytes += part.bytes();
}

void CheckpointStream::finish() {
  for (const auto& [name, entry] : header_.tensors) {
    const auto& [bytes, checksum] = progress_[name];
    WISP_CHECK(bytes == entry.end - entry.begin, file_.path(), ": ", name, " has ", bytes,
               " bytes of ", entry.end - entry.begin);
    header_.metadata[kTensorChecksum + name] = checksum_text(checksum);
  }
  header_.metadata[kHeaderChecksum] = seal_of(header_);
  file_.write_at(0, text_of(header_, file_.path()));
  file_.finish();
}

void CheckpointWriter::add(const std::string& name, const Tensor& tensor) {
  WISP_CHECK(name != "__metadata__", "checkpoint: a tensor cannot be named ", name);
  WISP_CHECK(tensor.defined(), "checkpoint: ", name, " is undefined");
  WISP_CHECK(!tensor.device().is_cuda(), "checkpoint: ", name, " is not on the host");
  WISP_CHECK(tensors_.emplace(name, tensor).second, "checkpoint: two tensors are named ", name);
}

void CheckpointWriter::metadata(const std::string& key, const std::string& value) {
  WISP_CHECK(!key.starts_with(kHeaderChecksum), "checkpoint: metadata ", key,
             ": names that start with ", kHeaderChecksum, " are for checksums");
  metadata_[key] = value;
}

void CheckpointWriter::write(const std::string& path) const {
  std::map<std::string, CheckpointStream::Entry> entries;
  for (const auto& [name, tensor] : tensors_) entries[name] = {tensor.shape(), tensor.dtype()};
  CheckpointStream stream(path, entries, metadata_);
  for (const auto& [name, tensor] : tensors_) stream.append(name, tensor);
  stream.finish();
}

CheckpointReader::CheckpointReader(std::string path, Checksums checksums) : file_(std::move(path)) {
  uint64_t length = 0;
  file_.read(&length, sizeof length, 0);
  const int64_t room = std::clamp<int64_t>(file_.bytes() - 8, 0, kMaxSafetensorsHeader);
  WISP_CHECK(length <= static_cast<uint64_t>(room), file_.path(), ": the header has ", length,
             " bytes, there is room for ", room, "; is it a safetensors file?");
  std::string text(length, '\0');
  file_.read(text.data(), static_cast<int64_t>(length), 8);
  data_ = 8 + static_cast<int64_t>(length);
  naming(file_.path(), [&] {
    header_ = SafetensorsHeader::parse(text, file_.bytes() - data_);
    check_seal(header_, checksums);
  });
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header_.tensors) names.push_back(name);
  return names;
}

const SafetensorsEntry& CheckpointReader::entry(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  WISP_CHECK(found != header_.tensors.end(), path(), ": has no tensor ", name);
  return found->second;
}

void CheckpointReader::read(const std::string& name, const Tensor& into) const {
  const SafetensorsEntry& given = entry(name);
  const SafetensorsEntry wanted{safetensors_name(into.dtype()),
                                {into.shape().begin(), into.shape().end()}};
  WISP_CHECK(given.str() == wanted.str(), path(), ": ", name, " is ", given.str(), ", expected ",
             wanted.str());
  WISP_CHECK(!into.device().is_cuda(), path(), ": ", name, " cannot be read to a device");
  file_.read(into.raw(), into.bytes(), data_ + given.begin);
  const auto said = header_.metadata.find(kTensorChecksum + name);
  if (said == header_.metadata.end()) return;  // the constructor has refused it if it is required
  const std::string checksum = checksum_text(crc32c(into.raw(), static_cast<size_t>(into.bytes())));
  WISP_CHECK(checksum == said->second, path(), ": ", name, " is damaged: its checksum is ",
             checksum, ", expected ", said->second);
}

Tensor CheckpointReader::read(const std::string& name, DType dtype) const {
  const SafetensorsEntry& given = entry(name);
  WISP_CHECK(given.dtype == safetensors_name(dtype), path(), ": ", name, " is ", given.str(),
             ", expected ", safetensors_name(dtype));
  const Tensor tensor = naming(concat(path(), ": ", name), [&] {
    return Tensor(Shape(std::span<const int64_t>(given.extents)), dtype);
  });
  read(name, tensor);
  return tensor;
}

const std::string& CheckpointReader::metadata(const std::string& key) const {
  const auto found = header_.metadata.find(key);
  WISP_CHECK(found != header_.metadata.end(), path(), ": has no metadata ", key);
  return found->second;
}

}  // namespace wisp
