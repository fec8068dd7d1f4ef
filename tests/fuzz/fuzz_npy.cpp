// Fuzz target for NumPy files.
#include "data/npy.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace wisp {

void fuzz(std::string_view input) {
  static const TempDir dir;
  const std::string path = dir.write("t.npy", std::string(input));
  try {
    NpyReader reader(path);
    std::vector<float> row;
    for (int64_t i = 0; i < reader.rows(); ++i) {
      row.resize(static_cast<size_t>(reader.row_shape().numel()));  // a row of the file's shape
      reader.read(i, row.data());
    }
  } catch (const Error&) {
  }
  try {
    NpyWriter(path, {2, 3}).keep(1);
  } catch (const Error&) {
  }
}

std::vector<std::string> fuzz_seeds() {
  const TempDir dir;
  const std::vector<float> row(6, 1.5f);
  NpyWriter writer(dir / "own.npy", {2, 3});
  writer.append(row.data());
  writer.append(row.data());
  const std::string text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
  std::string wide("\x93NUMPY\2\0", 8);
  wide += static_cast<char>(text.size());
  return {read_text(dir / "own.npy"), wide + std::string(3, '\0') + text + std::string(16, '\1')};
}

int64_t fuzz_memory(int64_t input_bytes) { return (1 << 16) + 100 * input_bytes; }

}  // namespace wisp
