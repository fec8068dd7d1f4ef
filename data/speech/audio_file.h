// Reading of sound files as one channel of f32 samples. FLAC, WAV and SPHERE need libsndfile; a
// build without it throws Error. Any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

struct Audio {
  std::vector<float> samples;  // range [-1, 1]; up to ±32768 in a file of floats
  int64_t rate = 0;            // samples per second
};

/// The most samples of a channel, 4.6 hours at 16 kHz. A few bytes of FLAC can decode to many.
constexpr int64_t kMostAudioSamples = int64_t{1} << 28;

/// Throws Error if `samples` is above kMostAudioSamples.
void check_audio_samples(int64_t samples);

/// Reads a FLAC, WAV or SPHERE file, recognised by its content, and averages channels. Throws Error
/// with the path for a file that is missing, above 1 GiB, another format, truncated, damaged, or
/// without samples; for more than kMostAudioSamples; and for samples that are not finite or beyond
/// ±32768. Memory grows with the decoded samples, never with a header's claim. Wrong bits in
/// samples are found only in FLAC, whose frames have checksums.
Audio read_audio(const std::string& path);

/// Decodes the bytes of a file like read_audio(); errors do not name a path.
Audio decode_audio(std::string bytes);

struct AudioLength {
  int64_t samples = 0;  // per channel
  int64_t rate = 0;
};

/// The length in a file's header. Decodes the sound only if the header lacks the number of samples.
/// Throws Error with the path for a file that is missing, another format, truncated (FLAC: only if
/// decoded), without samples, or with more than kMostAudioSamples.
AudioLength read_audio_length(const std::string& path);

/// The format of sound without a header: signed 16 bits, interleaved channels.
struct RawPcm {
  int64_t rate = 16000;
  int64_t channels = 1;
  bool big_endian = false;
};

/// Reads a file without a header, in any build. Throws Error with the path like read_audio(path),
/// and for a size that is no whole number of frames.
Audio read_audio(const std::string& path, const RawPcm& format);

/// The length of a file without a header, by its size. Throws Error like read_audio(path, format).
AudioLength read_audio_length(const std::string& path, const RawPcm& format);

}  // namespace wisp
