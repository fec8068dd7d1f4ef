// Sound as one channel of f32 samples, from files. FLAC, WAV and SPHERE need libsndfile; a build
// without it throws Error. Any thread may call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

struct Audio {
  std::vector<float> samples;  // in [-1, 1]; a file of floats may go beyond, to ±32768
  int64_t rate = 0;            // samples per second
};

/// How many samples a channel may have: 4.6 hours at 16 kHz. A few bytes of FLAC can be many.
constexpr int64_t kMostAudioSamples = int64_t{1} << 28;

/// Throws Error for more.
void check_audio_samples(int64_t samples);

/// Reads a FLAC, WAV or SPHERE file, told by what it holds, not by its name; channels are averaged.
/// Throws Error with the path for a file that is missing, above 1 GiB, no such sound, cut off or
/// damaged, holds no samples, more than kMostAudioSamples, or samples that are not finite or beyond
/// ±32768. Memory follows what is decoded, never what a header claims. Wrong bits within samples
/// are found in FLAC alone, whose frames have checksums.
Audio read_audio(const std::string& path);

/// The same of a file's bytes; errors do not name a path.
Audio decode_audio(std::string bytes);

struct AudioLength {
  int64_t samples = 0;  // of a channel
  int64_t rate = 0;
};

/// What a file's header says, without reading the sound, unless it does not say how many samples
/// there are. Throws Error with the path for a file that is missing, no such sound, cut off (of
/// FLAC only decoding tells), or holds no samples or more than kMostAudioSamples.
AudioLength read_audio_length(const std::string& path);

/// Samples without a header: signed 16 bits, channels interleaved.
struct RawPcm {
  int64_t rate = 16000;
  int64_t channels = 1;
  bool big_endian = false;
};

/// Reads a file of such samples, in any build. Throws Error with the path as above, and for bytes
/// that are no whole number of frames.
Audio read_audio(const std::string& path, const RawPcm& format);

/// How long the sound of such a file is, by its size. Throws Error as that.
AudioLength read_audio_length(const std::string& path, const RawPcm& format);

}  // namespace wisp
