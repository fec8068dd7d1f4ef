#include "core/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace wisp {
namespace {

using Json = nlohmann::json;  // sorted keys

constexpr const char* kMetadata = "__metadata__";
constexpr int kMaxExtents = 64;  // more than any tensor has; ends an endless list early

/// The bits of an element, for the format's types that Wisp does not have.
constexpr std::pair<const char*, int> kOtherTypes[] = {
    {"BOOL", 8},    {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},    {"U16", 16},    {"U64", 64},    {"C64", 64}};

constexpr std::pair<DType, const char*> kNames[] = {
    {DType::f32, "F32"}, {DType::f64, "F64"}, {DType::f16, "F16"}, {DType::bf16, "BF16"},
    {DType::i32, "I32"}, {DType::i64, "I64"}, {DType::u8, "U8"},   {DType::u32, "U32"}};

/// Stops the parser at content that no header has, before it takes memory or stack.
struct Watch {
  std::set<std::string> names, fields;
  int extents = 0;

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) {
      WISP_CHECK(depth <= 1, "the header is nested too deeply");
      if (depth == 1) fields.clear();
    } else if (event == Event::array_start) {
      WISP_CHECK(depth == 2, "the header has a list where none belongs");
      extents = 0;
    } else if (event == Event::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      const bool is_new = (depth == 1 ? names : fields).insert(name).second;
      WISP_CHECK(is_new, "the header names ", name, " twice");
    } else if (event == Event::value && depth >= 3) {
      WISP_CHECK(++extents <= kMaxExtents, "the header has a list of more than ", kMaxExtents,
                 " numbers");
    }
    return true;
  }
};

int64_t whole_number(const Json& value, const std::string& name, const char* what) {
  WISP_CHECK(value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX, name, ": ", what,
             " is ", value.dump(), ", expected a whole number");
  return value.get<int64_t>();
}

SafetensorsEntry entry_of(const std::string& name, const Json& json, int64_t data_bytes) {
  SafetensorsEntry entry;
  json.at("dtype").get_to(entry.dtype);
  const Json& shape = json.at("shape");
  WISP_CHECK(shape.is_array(), name, ": shape is ", shape.dump(), ", expected a list");
  for (const Json& extent : shape) entry.extents.push_back(whole_number(extent, name, "an extent"));
  const Json& offsets = json.at("data_offsets");
  WISP_CHECK(offsets.is_array() && offsets.size() == 2, name, ": data_offsets is ", offsets.dump(),
             ", expected two numbers");
  entry.begin = whole_number(offsets[0], name, "an offset");
  entry.end = whole_number(offsets[1], name, "an offset");
  WISP_CHECK(entry.begin <= entry.end && entry.end <= data_bytes, name, ": lies at bytes ",
             entry.begin, " to ", entry.end, " of ", data_bytes);
  return entry;
}

/// The bits of an element; 0 for a type that is not of the format.
int bits_of(const std::string& name) {
  if (const std::optional<DType> dtype = safetensors_dtype(name))
    return 8 * static_cast<int>(size_of(*dtype));
  for (const auto& [known, bits] : kOtherTypes)
    if (known == name) return bits;
  return 0;
}

/// Throws Error unless the entry has the bytes of its shape.
void check_size(const std::string& name, const SafetensorsEntry& entry) {
  int64_t bits = bits_of(entry.dtype);
  if (bits == 0) return;
  bool fits = true;
  for (const int64_t extent : entry.extents) fits &= !__builtin_mul_overflow(bits, extent, &bits);
  // an extent of 0 after an overflow is refused too: no real tensor has one
  WISP_CHECK(fits && bits % 8 == 0 && bits / 8 == entry.end - entry.begin, name, " has ",
             entry.end - entry.begin, " bytes, ", entry.str(), " needs ",
             fits ? bits % 8 == 0 ? std::to_string(bits / 8) : concat(bits, " bits") : "too many");
}

void check_no_gap(const std::map<std::string, SafetensorsEntry>& tensors, int64_t data_bytes) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, entry] : tensors) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  int64_t end = 0;
  for (const auto& [begin, next] : ranges) {
    WISP_CHECK(begin == end, "the tensors ", begin < end ? "overlap" : "leave a gap", " at byte ",
               begin, " of the data");
    end = next;
  }
  WISP_CHECK(end == data_bytes, "the file has ", data_bytes, " bytes of data, expected ", end);
}

}  // namespace

std::string SafetensorsEntry::str() const { return dtype + " " + Json(extents).dump(); }

std::string SafetensorsHeader::text() const {
  Json json;
  json[kMetadata] = metadata;
  for (const auto& [name, entry] : tensors) {
    json[name] = {{"dtype", entry.dtype},
                  {"shape", entry.extents},
                  {"data_offsets", {entry.begin, entry.end}}};
  }
  return json.dump();
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view text, int64_t data_bytes) {
  SafetensorsHeader header;
  try {
    const Json json = Json::parse(text, Watch());
    WISP_CHECK(json.is_object(), "the header is no JSON object");
    for (const auto& [name, value] : json.items()) {
      if (name == kMetadata) {
        if (!value.is_null()) value.get_to(header.metadata);
        continue;
      }
      const SafetensorsEntry entry = entry_of(name, value, data_bytes);
      check_size(name, entry);
      header.tensors.emplace(name, entry);
    }
  } catch (const Json::exception& error) {
    throw Error(concat("the header is damaged: ", error.what()));
  }
  check_no_gap(header.tensors, data_bytes);
  return header;
}

const char* safetensors_name(DType dtype) {
  for (const auto& [own, name] : kNames) {
    if (own == dtype) return name;
  }
  throw Error(concat("no safetensors name for dtype ", name_of(dtype)));
}

std::optional<DType> safetensors_dtype(std::string_view name) {
  for (const auto& [dtype, known] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace wisp
