#include "data/speech/audio_container.h"

#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/base/number.h"

namespace wisp {
namespace {

void check_samples(uint64_t promised, uint64_t present) {
  WISP_CHECK(promised <= present, "it is cut off: its header promises ", promised,
             " bytes of samples, ", present, " are there");
}

/// Whether a size is a placeholder, as in a file written to a pipe. A placeholder is close to 2^31
/// or 2^32, more than a readable file may have.
bool is_open(uint64_t size) {
  constexpr uint64_t kHalf = uint64_t{1} << 31, kClose = 4096;
  return size >= kHalf - kClose && (size + kClose) % kHalf <= kClose;
}

/// Chunks follow each other from byte 12 on. A chunk is a name, a size, that number of bytes, and a
/// padding byte if the size is odd. In RF64 the chunk ds64 has the sizes that need 64 bits. Returns
/// the position of a data size that is 0 because it was unknown, or 0.
size_t check_wav(std::string_view head, uint64_t bytes) {
  constexpr size_t kHeader = 8, kLongSize = 8, kLongSizes = 16;
  constexpr uint64_t kElsewhere = 0xffffffff;
  const auto order = head.starts_with("RIFX") ? std::endian::big : std::endian::little;
  const bool rf64 = head.starts_with("RF64");
  uint64_t whole = kHeader + unsigned_in(head.substr(4, 4), order);
  size_t long_size_at = 0;
  uint64_t at = 12;
  while (at + kHeader <= head.size()) {
    size_t size_at = at + 4;
    uint64_t size = unsigned_in(head.substr(size_at, 4), order);
    const std::string_view name = head.substr(at, 4);
    at += kHeader;
    if (name == "ds64" && rf64 && at + kLongSizes <= head.size()) {
      whole = kHeader + unsigned_in(head.substr(at, kLongSize), std::endian::little);
      long_size_at = at + kLongSize;
    }
    if (name == "data") {
      if (size == kElsewhere && long_size_at > 0) {
        size_at = long_size_at;
        size = unsigned_in(head.substr(size_at, kLongSize), std::endian::little);
      }
      if (size == 0 && whole != bytes) return size_at;
      if (!is_open(size)) check_samples(size, bytes - at);
      return 0;
    }
    at += size + size % 2;
  }
  WISP_CHECK(at + kHeader <= bytes, "it is cut off: a WAV file without samples");
  return 0;
}

bool is_wav(std::string_view head) {
  return head.size() >= 12 && head.substr(8, 4) == "WAVE" &&
         (head.starts_with("RIFF") || head.starts_with("RIFX") || head.starts_with("RF64"));
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
  const std::optional<uint32_t> value = number_in<uint32_t>(text);
  WISP_CHECK(value, "its SPHERE header has '", text, "' for ", name, ", expected a number");
  return *value;
}

/// The header is text; its second line is its length.
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
  const bool known = sphere_field(header, "sample_count").has_value();
  const uint64_t frames = known ? sphere_number(header, "sample_count") : 0;  // 0: up to the end
  WISP_CHECK(frame <= 65536, "its SPHERE header has frames of ", frame, " bytes");
  check_samples(frames * frame, bytes - length);
}

}  // namespace

int64_t tag_bytes(std::string_view head) {
  constexpr size_t kHeader = 10;
  constexpr unsigned kFooter = 0x10;
  if (head.size() < kHeader || !head.starts_with("ID3")) return 0;
  uint64_t size = 0;  // digits of 7 bits
  for (const char digit : head.substr(6, 4)) size = size << 7 | (digit & 0x7f);
  const bool footer = (static_cast<unsigned char>(head[5]) & kFooter) != 0;
  return static_cast<int64_t>(kHeader + size + (footer ? kHeader : 0));
}

size_t check_audio_container(std::string_view head, int64_t bytes) {
  WISP_CHECK(!head.empty(), "it is empty");
  const auto size = static_cast<uint64_t>(bytes);
  if (head.starts_with("fLaC")) return 0;
  if (is_wav(head)) return check_wav(head, size);
  WISP_CHECK(head.starts_with("NIST_1A\n"), "it is no FLAC, WAV or SPHERE file");
  check_sphere(head, size);
  return 0;
}

}  // namespace wisp
