// Contents of small sound files, for tests of decoders. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

/// The lowest `bytes` bytes of `value`, lowest first.
inline std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}
inline std::string big_endian(uint64_t value, int bytes) {
  const std::string text = little_endian(value, bytes);
  return {text.rbegin(), text.rend()};
}

/// 16-bit samples.
inline std::string pcm16(const std::vector<int>& samples) {
  std::string text;
  for (const int s : samples) text += little_endian(static_cast<uint64_t>(s), 2);
  return text;
}

/// Fields of a WAV file's header.
struct WavFormat {
  int tag = 1;  // 1: integers, 3: floats, 7: u-law
  int channels = 1;
  int64_t rate = 16000;
  int bits = 16;
};

inline std::string wav_file(const std::string& data, const WavFormat& format = {}) {
  const auto channels = static_cast<uint64_t>(format.channels);
  const auto bits = static_cast<uint64_t>(format.bits);
  const auto rate = static_cast<uint64_t>(format.rate);
  const std::string header =
      "WAVEfmt " + little_endian(16, 4) + little_endian(static_cast<uint64_t>(format.tag), 2) +
      little_endian(channels, 2) + little_endian(rate, 4) +
      little_endian(rate * channels * bits / 8, 4) + little_endian(channels * bits / 8, 2) +
      little_endian(bits, 2) + "data" + little_endian(data.size(), 4);
  return "RIFF" + little_endian(header.size() + data.size(), 4) + header + data;
}

/// A file in RF64, which has its sizes in a separate chunk. The header claims `bytes` bytes of
/// samples.
inline std::string rf64_file(const std::string& data, uint64_t bytes) {
  std::string file = wav_file(data);
  const std::string sizes = little_endian(bytes == 0 ? 0 : file.size() + 28, 8) +
                            little_endian(bytes, 8) + little_endian(bytes / 2, 8) +
                            little_endian(0, 4);
  file.replace(file.find("data") + 4, 4, little_endian(0xffffffff, 4));
  file.replace(0, 8, "RF64" + little_endian(0xffffffff, 4));
  return file.insert(12, "ds64" + little_endian(sizes.size(), 4) + sizes);
}

/// A file in RIFX. All numbers except the samples have the highest byte first.
inline std::string rifx_file(const std::string& data) {
  return "RIFX" + big_endian(36 + data.size(), 4) + "WAVEfmt " + big_endian(16, 4) +
         big_endian(1, 2) + big_endian(1, 2) + big_endian(16000, 4) + big_endian(32000, 4) +
         big_endian(2, 2) + big_endian(16, 2) + "data" + big_endian(data.size(), 4) + data;
}

/// An ID3v2 tag around `zeros` zeros, fewer than 2^14.
inline std::string id3_tag(size_t zeros) {
  return "ID3\3" + std::string(4, '\0') + static_cast<char>(zeros >> 7) +
         static_cast<char>(zeros & 0x7f) + std::string(zeros, '\0');
}

/// A SPHERE file. The header claims `frames` frames; the samples have 16 bits, highest byte first.
inline std::string sphere_file(const std::string& data, int64_t frames,
                               const std::string& coding = "pcm") {
  std::string header =
      "NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i 16000\nsample_n_bytes -i 2\n"
      "sample_byte_format -s2 10\nsample_sig_bits -i 16\nsample_coding -s" +
      std::to_string(coding.size()) + " " + coding + "\nsample_count -i " + std::to_string(frames) +
      "\nend_head\n";
  header.resize(1024, ' ');
  return header + data;
}

/// The remainder of the bytes modulo x^width + `polynomial`, for width 8 or 16.
inline uint64_t flac_crc(const std::string& bytes, int width, uint64_t polynomial) {
  uint64_t crc = 0;
  for (const char byte : bytes) {
    crc ^= uint64_t{static_cast<unsigned char>(byte)} << (width - 8);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc << 1 ^ ((crc >> (width - 1) & 1) != 0 ? polynomial : 0);
    crc &= (uint64_t{1} << width) - 1;
  }
  return crc;
}

/// Interleaved 16-bit samples in verbatim subframes, fewer than 128 blocks of 192 frames. The
/// header claims `claimed` frames; 0 means an unknown number, -1 the actual number. Source: RFC
/// 9639, sections 8 and 9.
inline std::string flac_file(const std::vector<int>& samples, int channels = 1,
                             int64_t rate = 16000, int64_t claimed = -1) {
  constexpr size_t kBlock = 192;
  const auto wide = static_cast<size_t>(channels);
  const size_t frames = samples.size() / wide;
  const uint64_t total = claimed < 0 ? frames : static_cast<uint64_t>(claimed);
  std::string file =
      "fLaC" + big_endian(0x80000022, 4) + big_endian(kBlock, 2) + big_endian(kBlock, 2) +
      std::string(6, '\0') +
      big_endian(static_cast<uint64_t>(rate) << 44 | static_cast<uint64_t>(channels - 1) << 41 |
                     uint64_t{15} << 36 | total,
                 8) +
      std::string(16, '\0');
  for (size_t begin = 0; begin < frames; begin += kBlock) {
    const size_t count = std::min(kBlock, frames - begin);
    std::string frame = big_endian(0xfff8, 2) + '\x70' +
                        static_cast<char>(static_cast<size_t>(channels - 1) << 4) +
                        static_cast<char>(begin / kBlock) + big_endian(count - 1, 2);
    frame += big_endian(flac_crc(frame, 8, 0x07), 1);
    for (size_t c = 0; c < wide; ++c) {
      frame += '\x02';
      for (size_t i = 0; i < count; ++i)
        frame += big_endian(static_cast<uint64_t>(samples[(begin + i) * wide + c]), 2);
    }
    file += frame + big_endian(flac_crc(frame, 16, 0x8005), 2);
  }
  return file;
}

}  // namespace wisp
