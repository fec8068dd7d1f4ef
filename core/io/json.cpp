#include "core/io/json.h"

#include <set>

#include "core/io/input_file.h"

namespace wisp {

namespace {

/// Watches the depth and the keys of a text. The library's parser with a callback could do so, too,
/// but it takes time by the square of a list's length.
template <class Json>
class JsonWatch final : public nlohmann::json_sax<Json> {
 public:
  explicit JsonWatch(const MayRepeat& may_repeat) : may_repeat_(may_repeat) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(typename Json::number_integer_t) override { return true; }
  bool number_unsigned(typename Json::number_unsigned_t) override { return true; }
  bool number_float(typename Json::number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(typename Json::binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    const bool may = may_repeat_ && may_repeat_(static_cast<int>(keys_.size()), key);
    WISP_CHECK(may || keys_.back().insert(key).second, key, " is there twice");
    return true;
  }
  /// The parser says what is wrong.
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool open() {
    WISP_CHECK(std::ssize(keys_) < kMostJsonDepth, "it is nested too deeply");
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const MayRepeat& may_repeat_;
  std::vector<std::set<std::string>> keys_;  // of the open objects and lists, the outermost first
};

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const MayRepeat& may_repeat) {
  JsonWatch<Json> watch(may_repeat);
  Json::sax_parse(text, &watch);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(error.what());
  }
}

template nlohmann::json parse_json(std::string_view, const MayRepeat&);
template nlohmann::ordered_json parse_json(std::string_view, const MayRepeat&);

template <class Json>
Json read_json(const std::string& path) {
  return naming(path, [&] { return parse_json<Json>(read_whole_file(path, kMostJsonBytes)); });
}

template nlohmann::json read_json(const std::string&);
template nlohmann::ordered_json read_json(const std::string&);

}  // namespace wisp
