#include "data/speech/audio_container.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "core/base/error.h"

namespace wisp {
namespace {

void check_samples(uint64_t promised, uint64_t present) {
  WISP_CHECK(promised <= present, "it is cut off: its header promises ", promised,
             " bytes of samples, ", present, " are there");
}

uint64_t little_endian_word(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 4; i > 0; --i) word = word << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return word;
}

/// Chunks follow each other from byte 12 on: a name, a size, that many bytes, one more if it is
/// odd.
void check_wav(std::string_view head, uint64_t bytes) {
  constexpr size_t kHeader = 8;
  uint64_t at = 12;
  while (at + kHeader <= head.size()) {
    const uint64_t size = little_endian_word(head.substr(at + 4));
    const bool samples = head.substr(at, 4) == "data";
    at += kHeader;
    if (samples) return check_samples(size, bytes - at);
    at += size + size % 2;
  }
  WISP_CHECK(at + kHeader <= bytes, "it is cut off: a WAV file without samples");
}

/// The value of a line "name -type value".
std::optional<std::string_view> sphere_field(std::string_view header, std::string_view name) {
  const size_t begin = header.find(concat("\n", name, " -"));
  if (begin == header.npos) return {};
  const std::string_view line = header.substr(begin + 1, header.find('\n', begin + 1) - begin - 1);
  return line.substr(line.rfind(' ') + 1);
}

uint64_t sphere_number(std::string_view header, std::string_view name) {
  const std::string_view text = sphere_field(header, name).value_or("");
  uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  WISP_CHECK(failure == std::errc() && end == text.data() + text.size(), "its SPHERE header has '",
             text, "' for ", name, ", expected a number");
  return value;
}

/// The header is text of the length that its second line tells.
void check_sphere(std::string_view head, uint64_t bytes) {
  uint32_t length = 0;
  const std::string_view line = head.substr(0, 16).substr(8);
  const size_t digits = line.find_first_not_of(' ');
  if (digits != line.npos) std::from_chars(line.data() + digits, line.data() + line.size(), length);
  WISP_CHECK(16 < length && length <= head.size(), "it is cut off: its SPHERE header has ", length,
             " bytes, the file ", bytes);
  const std::string_view header = head.substr(0, length);
  const std::string_view coding = sphere_field(header, "sample_coding").value_or("pcm");
  WISP_CHECK(coding.find("shorten") == coding.npos,
             "it is a SPHERE file that shorten compressed, expected one of plain samples, as "
             "sph2pipe makes of it");
  const uint64_t frame =
      sphere_number(header, "channel_count") * sphere_number(header, "sample_n_bytes");
  const uint64_t frames = sphere_number(header, "sample_count");
  WISP_CHECK(frame <= 65536, "its SPHERE header has frames of ", frame, " bytes");
  check_samples(frames * frame, bytes - length);
}

}  // namespace

void check_audio_container(std::string_view head, int64_t bytes) {
  WISP_CHECK(!head.empty(), "it is empty");
  const auto size = static_cast<uint64_t>(bytes);
  if (head.starts_with("fLaC")) return;
  if (head.starts_with("RIFF") && head.size() >= 12 && head.substr(8, 4) == "WAVE")
    return check_wav(head, size);
  WISP_CHECK(head.starts_with("NIST_1A\n"), "it is no FLAC, WAV or SPHERE file");
  check_sphere(head, size);
}

}  // namespace wisp
