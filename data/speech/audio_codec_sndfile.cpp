#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "core/base/error.h"
#include "data/speech/audio_codec.h"

namespace wisp {
namespace {

/// Bytes for libsndfile, of a file or in memory.
struct Bytes {
  sf_count_t size;
  std::function<void(char* into, sf_count_t count, sf_count_t from)> read;
  sf_count_t at = 0;
};

Bytes& bytes_of(void* data) { return *static_cast<Bytes*>(data); }

sf_count_t size_of(void* data) { return bytes_of(data).size; }

sf_count_t tell(void* data) { return bytes_of(data).at; }

sf_count_t seek(sf_count_t offset, int whence, void* data) {
  Bytes& bytes = bytes_of(data);
  const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? bytes.at : bytes.size;
  if (offset < -from || offset > bytes.size - from) return -1;
  return bytes.at = from + offset;
}

sf_count_t read(void* into, sf_count_t count, void* data) {
  Bytes& bytes = bytes_of(data);
  count = std::clamp<sf_count_t>(count, 0, bytes.size - bytes.at);
  try {
    bytes.read(static_cast<char*>(into), count, bytes.at);
  } catch (const Error&) {  // libsndfile's C code lets no exception pass, and reports too few bytes
    return 0;
  }
  bytes.at += count;
  return count;
}

sf_count_t refuse_write(const void*, sf_count_t, void*) { return 0; }

using OpenFile = std::unique_ptr<SNDFILE, decltype(&sf_close)>;

/// Opens a file. `bytes` must outlive it.
OpenFile open(Bytes& bytes, SF_INFO& info) {
  SF_VIRTUAL_IO calls{size_of, seek, read, refuse_write, tell};
  SNDFILE* file = sf_open_virtual(&calls, SFM_READ, &info, &bytes);
  // the reason is in a variable shared by all threads (sf_strerror of no file)
  WISP_CHECK(file,
             "libsndfile cannot read it: the header is damaged, or the samples are coded in a way "
             "it does not know");
  return {file, sf_close};
}

constexpr sf_count_t kBlock = 4096;  // frames per read

/// Appends the mean over the channels of each of `count` frames to `samples`.
void append_mean(const float* frames, sf_count_t count, int channels, std::vector<float>& samples) {
  for (sf_count_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int c = 0; c < channels; ++c) sum += frames[i * channels + c];
    samples.push_back(sum / static_cast<float>(channels));
  }
}

}  // namespace

Audio decode_with_library(std::string bytes) {
  Bytes memory{static_cast<sf_count_t>(bytes.size()),
               [&](char* into, sf_count_t count, sf_count_t from) {
                 std::memcpy(into, bytes.data() + from, static_cast<size_t>(count));
               }};
  SF_INFO info{};
  const OpenFile file = open(memory, info);
  Audio audio{{}, info.samplerate};
  std::vector<float> block(static_cast<size_t>(kBlock * info.channels));
  sf_count_t left = info.frames;  // a FLAC file may have tags after the last frame
  for (bool more = left > 0; more;) {
    const sf_count_t count = sf_readf_float(file.get(), block.data(), std::min(kBlock, left));
    left -= count;
    more = left > 0 && count > 0 &&
           sf_error(file.get()) == SF_ERR_NO_ERROR;  // the next call clears the error
    append_mean(block.data(), count, info.channels, audio.samples);
    check_audio_samples(std::ssize(audio.samples));
  }
  WISP_CHECK(sf_error(file.get()) == SF_ERR_NO_ERROR, "it is cut off or damaged: libsndfile says '",
             sf_strerror(file.get()), "'");
  const auto frames = static_cast<sf_count_t>(audio.samples.size());
  const bool length_unknown = info.frames == SF_COUNT_MAX;
  WISP_CHECK(length_unknown || frames == info.frames, "it is cut off or damaged: its header ",
             "promises ", info.frames, " samples, ", frames, " can be read");
  return audio;
}

AudioLength length_with_library(const RandomAccessFile& sound) {
  Bytes bytes{sound.bytes(), [&](char* into, sf_count_t count, sf_count_t from) {
                sound.read(into, count, from);
              }};
  SF_INFO info{};
  const OpenFile file = open(bytes, info);
  return {info.frames == SF_COUNT_MAX ? 0 : info.frames, info.samplerate};
}

}  // namespace wisp
