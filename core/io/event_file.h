// A file of a run's scalars in the format of TensorBoard: one protobuf record per event, framed as
// in TFRecord files. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/io/output_file.h"

namespace wisp {

using Scalar = std::pair<std::string, double>;  // tag, value

class EventFile {
 public:
  /// Replaces the file `path`. TensorBoard reads the files of a directory with "tfevents" in their
  /// names, in order of their names. Events of `first_step` and later in earlier files no longer
  /// count. Times are seconds since 1970. Throws Error if the file cannot be written, as does
  /// scalars().
  EventFile(const std::string& path, int64_t first_step, double time);
  /// Omits values that are not finite. Readers see all values of a call at once.
  void scalars(int64_t step, double time, std::span<const Scalar> values);

 private:
  OutputFile file_;
};

}  // namespace wisp
