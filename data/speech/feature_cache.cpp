#include "data/speech/feature_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/hash.h"
#include "core/io/checkpoint.h"
#include "core/io/output_file.h"
#include "core/real_fft.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

/// Version of the features. Increase it when a change of decoding, resampling or spectrogram gives
/// other features for the same file and options.
constexpr int kVersion = 1;

constexpr const char* kFeatures = "features";
constexpr const char* kSound = "sound";

/// Calls `write`, which changes the folder. Its errors become FeatureCacheError.
template <class F>
void change(const F& write) {
  try {
    write();
  } catch (const Error& error) {
    throw FeatureCacheError(concat("data.cache: ", error.what()));
  }
}

std::string settings_of(const SpectrogramOptions& options, const RawPcm& raw) {
  const auto& [rate, window_ms, stride_ms, mels] = options;  // all options
  const auto& [raw_rate, channels, big_endian] = raw;
  return concat("version ", kVersion, " rate ", rate, " window ", window_ms, " stride ", stride_ms,
                " mels ", mels, " raw ", raw_rate, " ", channels, " ", big_endian, " fft ",
                make_cpu_fft()->numerics());
}

struct Sound {
  std::string path;   // canonical path
  std::string state;  // changes when the file is replaced or touched
};

std::string text_of(const timespec& time) {
  return fmt::format("{}.{:09}", time.tv_sec, time.tv_nsec);
}

/// The state has the time of the last change, which nobody can set; a copy may keep size and
/// modification time.
Sound sound_of(const std::string& audio) {
  std::error_code failure;
  const fs::path path = fs::canonical(audio, failure);
  WISP_CHECK(!failure, audio, ": ", failure.message());
  struct stat file;
  WISP_CHECK(stat(path.c_str(), &file) == 0, audio, ": ", std::strerror(errno));
  return {path.string(), concat(file.st_size, " bytes, inode ", file.st_ino, ", modified ",
                                text_of(file.st_mtim), ", changed ", text_of(file.st_ctim))};
}

/// The stored features. Undefined if they are missing, damaged, or of another sound or shape.
Tensor kept(const std::string& entry, const std::string& state, const Shape& shape) {
  try {
    const CheckpointReader reader(entry);
    if (reader.metadata(kSound) != state) return {};
    Tensor features(shape, DType::f32);
    reader.read(kFeatures, features);
    return features;
  } catch (const Error&) {
    return {};  // whatever the reason, the entry is written again
  }
}

}  // namespace

FeatureCache::FeatureCache(std::string folder, const SpectrogramOptions& options, const RawPcm& raw)
    : folder_(std::move(folder)), settings_(settings_of(options, raw)) {
  change([&] {
    std::error_code failure;
    fs::create_directories(folder_, failure);
    WISP_CHECK(!failure, folder_, ": cannot be made: ", failure.message());
    const WholeFile probe(folder_ + "/probe");
  });
}

Tensor FeatureCache::find(const std::string& audio, const Shape& shape,
                          const std::function<Tensor()>& make) const {
  const auto [path, state] = sound_of(audio);  // before make() reads it
  const std::string entry =
      fmt::format("{}/{:016x}.safetensors", folder_, hash_text(settings_, hash_text(path)));
  Tensor features = kept(entry, state, shape);
  if (features.defined()) return features;
  features = make();
  change([&, state = state] {
    CheckpointWriter writer;
    writer.add(kFeatures, features);
    writer.metadata(kSound, state);
    writer.write(entry);
  });
  return features;
}

}  // namespace wisp
