#include "data/photos/photo_packing.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/work_queue.h"
#include "core/io/input_file.h"
#include "data/decoding/image_codec.h"
#include "data/decoding/photo.h"
#include "data/decoding/ppm.h"
#include "data/decoding/resample_image.h"
#include "data/order.h"
#include "data/photos/photo_shards.h"

namespace wisp {
namespace {

constexpr int64_t kOfEachJob = 16;  // photos that a thread encodes before they are written

struct Task {
  int64_t photo = 0;
  std::string bytes, fault;
};

/// The whole picture, with `side` as its shorter side.
View scaled_view(const Photo& photo, int64_t side) {
  const int64_t height = photo.height(), width = photo.width(), shorter = std::min(height, width);
  const auto scaled = [&](int64_t extent) { return extent * side / shorter; };
  return {
      {0, 0, height, width}, scaled(height), scaled(width), {0, 0, scaled(height), scaled(width)}};
}

/// The bytes that shards hold for a photo's file. A photo whose shorter side is larger than `side`
/// is scaled to it, as in evaluation, and encoded. Otherwise the bytes stay, unless `raw` asks for
/// pixels. Throws Error for a file that no decoder reads.
std::string packed_photo(std::string_view file, const PackOptions& options) {
  if (options.side == 0) return std::string(file);
  const Photo photo(file);
  const bool smaller = std::min(photo.height(), photo.width()) <= options.side;
  if (smaller && !options.raw) return std::string(file);
  const Region whole{0, 0, photo.height(), photo.width()};
  DecodedImage image = photo.decode(whole);
  WISP_CHECK(image.complaint.empty(), image.complaint);
  if (!smaller)
    image.pixels =
        resample_image(image.pixels, whole, scaled_view(photo, options.side), Filter::bilinear);
  return options.raw ? encode_ppm(image.pixels) : encode_jpeg(image.pixels, options.quality);
}

void encode(const PhotoSet& photos, const PackOptions& options, Task& task) {
  std::string buffer;
  naming(photos.folder() + "/" + photos.name(task.photo), [&] {
    const std::string_view file = photos.bytes(task.photo, buffer);
    try {
      task.bytes = packed_photo(file, options);
    } catch (const MissingLibrary&) {
      throw;
    } catch (const Error& error) {
      task.fault = concat(photos.folder(), "/", photos.name(task.photo), ": ", error.what());
      task.bytes = file;
    }
  });
}

}  // namespace

std::string packing_origin(const PhotoSet& photos, const PackOptions& options) {
  const std::string form =
      options.side == 0 ? "the files' bytes"
      : options.raw     ? concat("pixels of side ", options.side)
                        : concat("JPEGs of side ", options.side, " and quality ", options.quality);
  return concat(photos.count(), " photos (", hash_digits(photos.digest()), ") as ", form);
}

PackedPhotos pack_photos(const PhotoSet& photos, const std::vector<std::string>& classes,
                         const std::string& folder, const PackOptions& options,
                         const std::function<bool(int64_t)>& progress) {
  PhotoShardWriter writer(folder, classes, packing_origin(photos, options));
  const std::vector<int64_t> order = shuffled(photos.count(), 0, 0);
  PackedPhotos packed;
  std::vector<Task> tasks;
  std::vector<std::unique_ptr<WorkQueue>> threads;  // declared last: they end before the tasks
  for (int job = 0; job < options.jobs; ++job) threads.push_back(std::make_unique<WorkQueue>());
  for (int64_t first = 0; first < photos.count(); first += std::ssize(tasks)) {
    tasks.assign(static_cast<size_t>(std::min(options.jobs * kOfEachJob, photos.count() - first)),
                 {});
    for (size_t i = 0; i < tasks.size(); ++i) {
      tasks[i].photo = order[static_cast<size_t>(first) + i];
      threads[i % threads.size()]->post([&, i] { encode(photos, options, tasks[i]); });
    }
    for (const auto& thread : threads) thread->drain();
    for (const Task& task : tasks) {
      writer.add(photos.name(task.photo), photos.label(task.photo), task.bytes);
      packed.bytes += std::ssize(task.bytes);
      if (!task.fault.empty()) packed.damaged.push_back(task.fault);
    }
    packed.photos += std::ssize(tasks);
    if (!progress(packed.photos)) {
      packed.stopped = true;
      return packed;
    }
  }
  writer.finish();
  return packed;
}

}  // namespace wisp
