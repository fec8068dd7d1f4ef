#include "core/io/json.h"

#include <set>

#include "core/io/input_file.h"

namespace wisp {

template <class Json>
Json parse_json(std::string_view text, const MayRepeat& may_repeat) {
  std::vector<std::set<std::string>> keys;  // of the open objects, by depth
  const auto watch = [&](int depth, typename Json::parse_event_t event, const Json& parsed) {
    using Event = typename Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      WISP_CHECK(depth < kMostJsonDepth, "it is nested too deeply");
      if (event == Event::array_start) return true;
      if (std::ssize(keys) <= depth) keys.resize(static_cast<size_t>(depth) + 1);
      keys[static_cast<size_t>(depth)].clear();
    } else if (event == Event::key) {
      const auto& key = parsed.template get_ref<const std::string&>();
      const bool may = may_repeat && may_repeat(depth, key);
      WISP_CHECK(may || keys[static_cast<size_t>(depth) - 1].insert(key).second, key,
                 " is there twice");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
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
