// Scalars of a run in the format that TensorBoard reads: a record per event, framed as in TFRecord
// files, the event in protobuf. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/io/output_file.h"
#include "core/io/protobuf.h"

namespace wisp {

using Scalar = std::pair<std::string, double>;  // tag, value

class EventFile {
 public:
  /// Replaces what `path` held; TensorBoard finds files with "tfevents" in their names, and reads
  /// those of a directory in order of their names. `first_step`: events of it and of later steps in
  /// earlier files do not count any more. Times are seconds since 1970. Throws Error if the file
  /// cannot be written, as the others do.
  EventFile(const std::string& path, int64_t first_step, double time);
  /// Values that are not finite are left out. Readers see all of them at once.
  void scalars(int64_t step, double time, std::span<const Scalar> values);

 private:
  void write(const ProtobufWriter& event);

  OutputFile file_;
};

}  // namespace wisp
