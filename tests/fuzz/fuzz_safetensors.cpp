// Fuzz target for safetensors files, Wisp's own and other programs'. The input is the file. After a
// '{', it is only the header's text, a zero byte, and the data.
#include "core/io/checkpoint.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::string file_of(std::string_view input) {
  if (input.empty() || input.front() != '{') return std::string(input);
  const std::string_view header = input.substr(0, input.find('\0'));
  const std::string_view data = input.substr(std::min(input.size(), header.size() + 1));
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file.append(header).append(data);
}

Shape shape_of(const std::vector<int64_t>& extents) {
  switch (extents.size()) {
    case 0:
      return {};
    case 1:
      return {extents[0]};
    case 2:
      return {extents[0], extents[1]};
    default:
      return {extents[0], extents[1], extents[2]};
  }
}

void read_all(const std::string& path, CheckpointReader::Checksums checksums) {
  const CheckpointReader reader(path, checksums);
  for (const std::string& name : reader.names()) {
    const SafetensorsEntry& entry = reader.entry(name);
    const std::optional<DType> dtype = safetensors_dtype(entry.dtype);
    if (!dtype) continue;  // an unknown type may have any shape
    try {
      reader.read(name, Tensor(shape_of(entry.extents), *dtype));
    } catch (const Error&) {  // the next tensor may be whole
    }
  }
}

}  // namespace

void fuzz(std::string_view input) {
  static const TempDir dir;
  const std::string path = dir.write("t.safetensors", file_of(input));
  for (const auto checksums :
       {CheckpointReader::Checksums::optional, CheckpointReader::Checksums::required}) {
    try {
      read_all(path, checksums);
    } catch (const Error&) {
    }
  }
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  CheckpointWriter writer;
  writer.add("weight", Tensor({3, 5}, DType::f32));
  writer.add("bias", Tensor({5}, DType::bf16));
  writer.add("steps", Tensor({}, DType::i64));
  writer.metadata("note", "\"\n");
  writer.write(dir / "own");
  const std::string own = read_text(dir / "own");
  using namespace std::string_literals;
  return {own, own.substr(own.find('{')),
          R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
          R"("b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[8,10]}})"s +
              '\0' + "0123456789"};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
