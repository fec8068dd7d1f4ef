#include "data/speech/audio_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "data/speech/audio_codec.h"
#include "data/speech/audio_container.h"

namespace wisp {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr int64_t kHead = int64_t{64} << 10;  // bytes that nearly always contain all headers
constexpr float kLoudest = 32768;             // limit that keeps squares of sums finite in f32

void check_rate(int64_t rate) {
  WISP_CHECK(rate > 0, "its rate is ", rate, ", expected samples per second");
}

/// The length of `bytes` bytes without a header.
AudioLength raw_length(int64_t bytes, const RawPcm& format) {
  WISP_CHECK(format.rate > 0 && 0 < format.channels && format.channels <= 1024, format.channels,
             " channels at a rate of ", format.rate, ", expected 1 to 1024 and more than 0");
  const int64_t frame = 2 * format.channels;
  WISP_CHECK(bytes > 0, "it is empty");
  WISP_CHECK(bytes % frame == 0, "it has ", bytes, " bytes, expected a multiple of ", frame,
             ": 2 for each of ", format.channels, " channels");
  return {bytes / frame, format.rate};
}

Audio decode_raw(const std::string& bytes, const RawPcm& format) {
  const AudioLength length = raw_length(std::ssize(bytes), format);
  const size_t high = format.big_endian ? 0 : 1;
  Audio audio{std::vector<float>(static_cast<size_t>(length.samples)), length.rate};
  size_t at = 0;
  for (float& sample : audio.samples) {
    int64_t sum = 0;
    for (int64_t c = 0; c < format.channels; ++c, at += 2)
      sum += static_cast<signed char>(bytes[at + high]) * 256 +
             static_cast<unsigned char>(bytes[at + 1 - high]);
    sample = static_cast<float>(static_cast<double>(sum) /
                                (32768.0 * static_cast<double>(format.channels)));
  }
  return audio;
}

/// Bytes of a file from `begin` on, enough for nearly all headers.
std::string part_of(const RandomAccessFile& file, int64_t begin) {
  std::string part(static_cast<size_t>(std::clamp<int64_t>(file.bytes() - begin, 0, kHead)), '\0');
  file.read(part.data(), std::ssize(part), begin);
  return part;
}

}  // namespace

void check_audio_samples(int64_t samples) {
  WISP_CHECK(samples <= kMostAudioSamples, "it has ", samples, " samples, expected ",
             kMostAudioSamples, " at most");
}

Audio decode_audio(std::string bytes) {
  bytes.erase(0, static_cast<size_t>(tag_bytes(bytes)));
  const size_t open_size = check_audio_container(bytes, std::ssize(bytes));
  if (open_size > 0) bytes.replace(open_size, 4, "\xff\xff\xff\xff");  // up to the end
  Audio audio = decode_with_library(std::move(bytes));
  check_rate(audio.rate);
  WISP_CHECK(!audio.samples.empty(), "it holds no samples");
  for (size_t i = 0; i < audio.samples.size(); ++i)
    WISP_CHECK(std::abs(audio.samples[i]) <= kLoudest, "its sample ", i, " is ", audio.samples[i],
               ", expected a number within ", -kLoudest, " and ", kLoudest);
  return audio;
}

Audio read_audio(const std::string& path) {
  return naming(path, [&] { return decode_audio(read_whole_file(path, kMostBytes)); });
}

AudioLength read_audio_length(const std::string& path) {
  const RandomAccessFile file(path);
  const int64_t tag = tag_bytes(part_of(file, 0));
  return naming(path, [&] {
    check_audio_container(part_of(file, tag), std::max<int64_t>(file.bytes() - tag, 0));
    const AudioLength length = length_with_library(file);
    if (length.samples == 0) {  // for example a file that was written to a pipe
      const Audio audio = decode_audio(read_whole_file(path, kMostBytes));
      return AudioLength{std::ssize(audio.samples), audio.rate};
    }
    check_rate(length.rate);
    check_audio_samples(length.samples);
    return length;
  });
}

Audio read_audio(const std::string& path, const RawPcm& format) {
  return naming(path, [&] { return decode_raw(read_whole_file(path, kMostBytes), format); });
}

AudioLength read_audio_length(const std::string& path, const RawPcm& format) {
  return naming(path, [&] {
    const AudioLength length = raw_length(file_bytes(path), format);
    check_audio_samples(length.samples);
    return length;
  });
}

}  // namespace wisp
