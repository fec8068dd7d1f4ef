// Files as a stranger makes them: any content under right checksums. For tests.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "core/base/number.h"
#include "core/io/checkpoint.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/checksum.h"
#include "tests/support/temp_dir.h"

namespace wisp {

/// Makes the manifest of a checkpoint anew, with these facts.
inline void seal_checkpoint(const std::string& directory, const CheckpointFacts& facts) {
  std::filesystem::rename(directory, directory + ".tmp");
  publish_directory(directory + ".tmp", directory, facts);
}

inline void change_fact(const std::string& directory, const std::string& name,
                        const std::string& value) {
  CheckpointFacts facts = checkpoint_facts(directory);
  facts[name] = value;
  seal_checkpoint(directory, facts);
}

/// All tensors of a file by name.
inline std::map<std::string, Tensor> tensors_in(const std::string& path) {
  const CheckpointReader file(path);
  std::map<std::string, Tensor> tensors;
  for (const std::string& name : file.names())
    tensors[name] = file.read(name, safetensors_dtype(file.entry(name).dtype).value());
  return tensors;
}

/// Writes tensors to a file of a checkpoint.
inline void write_tensors(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  CheckpointWriter writer;
  for (const auto& [name, tensor] : tensors) writer.add(name, tensor);
  writer.write(path);
}

/// Changes a tensor in each file of a checkpoint that has it. Returns the number of those files.
inline int change_tensor(const std::string& directory, const std::string& name,
                         const std::function<void(const Tensor&)>& change) {
  const CheckpointFacts facts = checkpoint_facts(directory);
  int changed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::map<std::string, Tensor> tensors = tensors_in(entry.path().string());
    if (!tensors.contains(name)) continue;
    change(tensors[name]);
    write_tensors(entry.path().string(), tensors);
    ++changed;
  }
  seal_checkpoint(directory, facts);
  return changed;
}

/// Writes a safetensors file with this header and data, and with right checksums of both.
inline void write_sealed(const TempDir& dir, const std::string& name, SafetensorsHeader header,
                         const std::string& data) {
  for (const auto& [tensor, entry] : header.tensors) {
    const auto bytes = static_cast<size_t>(entry.end - entry.begin);
    header.metadata["crc32c." + tensor] = checksum_text(crc32c(data.data() + entry.begin, bytes));
  }
  header.metadata["crc32c"] = checksum_text(0);
  const std::string zeroed = header.text();
  header.metadata["crc32c"] = checksum_text(crc32c(zeroed.data(), zeroed.size()));
  const std::string text = header.text();
  dir.write(name, bytes_of(uint64_t{text.size()}) + text + data);
}

}  // namespace wisp
