// CIFAR-10 in its official binary version: five training files and a test file of records. A record
// is a label byte and 3072 pixel bytes, plane by plane. Source: Krizhevsky 2009. Any thread.
#pragma once

#include "data/examples.h"
#include "data/images/image_set.h"

namespace wisp {

/// The folder with the files: `path` itself or cifar-10-batches-bin in it. Throws Error with advice
/// on getting the data if `path` is no directory.
std::string find_cifar10(const std::string& path);

/// Reads a split from the folder with the six files, each of exactly `records_per_file` records.
/// Throws Error for a missing file, for a file of another size (with both sizes), and for a label
/// above 9 (with file and record).
ImageSet read_cifar10(const std::string& folder, Split split, int64_t records_per_file = 10000);

}  // namespace wisp
