#include "core/io/config_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/toml_limits.h"

namespace wisp {
namespace {

constexpr const char* kCommandLine = "command line";

/// "file:line"; a node without a path comes from an override.
std::string place_of(const toml::node& node) {
  const toml::source_region& source = node.source();
  if (!source.path) return kCommandLine;
  return fmt::format("{}:{}", *source.path, source.begin.line);
}

using Document = std::shared_ptr<const toml::table>;

Document parse(const std::string& text, const std::string& name) {
  check_toml_limits(text, name);
  try {
    return std::make_shared<const toml::table>(toml::parse(text, std::string_view(name)));
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

/// `asked_by` is "FILE:LINE: extends " or empty.
std::string read_file(const std::string& path, const std::string& asked_by) {
  return naming(asked_by + path, [&] { return read_whole_file(path, kMostConfigBytes); });
}

/// Parses the value of an override: TOML, or a bare word.
Document parse_value(const std::string& key, const std::string& text) {
  const bool bare = text.find_first_of("\"'[{") != 0;
  const std::string name = fmt::format("{}: {}={}", kCommandLine, key, text);
  try {
    check_toml_limits(text, name);
    auto document = std::make_shared<const toml::table>(toml::parse("value = " + text));
    if (document->size() == 1) return document;
  } catch (const toml::parse_error& error) {
    WISP_CHECK(bare, name, ": ", error.description());
  } catch (const Error&) {
    if (!bare) throw;
  }
  try {
    return std::make_shared<const toml::table>(toml::parse("value = " + to_toml(text)));
  } catch (const toml::parse_error& error) {  // not UTF-8
    throw Error(fmt::format("{}: {}", name, error.description()));
  }
}

}  // namespace

const ConfigTree::Entry* ConfigTree::find(const std::string& key) const {
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : &found->second;
}

const ConfigTree::Entry* ConfigTree::first_below(const std::string& key) const {
  const auto found = entries.lower_bound(key + ".");
  const bool below = found != entries.end() && found->first.starts_with(key + ".");
  return below ? &found->second : nullptr;
}

void ConfigTree::put(const std::string& key, Entry entry) {
  entries.erase(entries.lower_bound(key + "."), entries.lower_bound(key + "/"));  // '.' + 1
  for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1))
    entries.erase(key.substr(0, dot));
  entries[key] = std::move(entry);
}

/// Starts a new layer, which wins over all entries so far.
void ConfigTree::begin_layer() {
  if (!entries.empty()) earlier = std::make_shared<const ConfigTree>(*this);
}

void ConfigTree::put_all(const Document& document, const toml::table& table,
                         const std::string& path) {
  constexpr size_t kMost = 256;  // each value stores its whole key, so long keys take much memory
  for (const auto& [name, node] : table) {
    const std::string key = path + to_toml_key(name.str());
    WISP_CHECK(key.size() <= kMost, place_of(node), ": a key has ", key.size(),
               " characters, at most ", kMost, " are possible");
    if (const toml::table* below = node.as_table()) {
      put_all(document, *below, key + ".");
    } else {
      put(key, {std::shared_ptr<const toml::node>(document, &node), place_of(node)});
    }
  }
}

void ConfigTree::put_file(const std::string& path) {
  put_layers(read_file(path, ""), path, {path});
}

void ConfigTree::put_text(const std::string& text, const std::string& name) {
  put_layers(text, name, {});
}

void ConfigTree::put_layers(const std::string& text, const std::string& name, Files files) {
  const Document document = parse(text, name);
  if (const toml::node* extends = document->get("extends"))
    put_base(*extends, name, std::move(files));
  begin_layer();
  put_all(document, *document, "");
  entries.erase("extends");
}

void ConfigTree::put_base(const toml::node& extends, const std::string& name, Files files) {
  const std::string place = place_of(extends);
  const auto* base = extends.as_string();
  WISP_CHECK(base, place, ": extends is ", article_and_type(extends), ", expected a file name");
  const std::string path =
      (std::filesystem::path(name).parent_path() / base->get()).lexically_normal().string();
  const std::string text = read_file(path, place + ": extends ");
  const bool cycle = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return std::filesystem::equivalent(file, path);
  });
  files.push_back(path);
  WISP_CHECK(!cycle, place, ": extends makes a cycle: ", fmt::to_string(fmt::join(files, " -> ")));
  put_layers(text, path, std::move(files));
}

void ConfigTree::put_value(const std::string& key, const std::string& value) {
  WISP_CHECK(is_bare_dotted(key), kCommandLine, ": '", key, "' is not a key, expected a.b=value");
  const Document document = parse_value(key, value);
  const toml::node& node = *document->get("value");
  if (const toml::table* table = node.as_table()) {
    put_all(document, *table, key + ".");
  } else {
    const bool scalar = node.is_value() && !value.starts_with('"') && !value.starts_with('\'');
    put(key,
        {std::shared_ptr<const toml::node>(document, &node), kCommandLine, scalar ? value : ""});
  }
}

void ConfigTree::put_overrides(std::span<const std::string> overrides) {
  if (!overrides.empty()) begin_layer();
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    WISP_CHECK(equals != text.npos, kCommandLine, ": '", text, "' has no '=', expected a.b=value");
    put_value(text.substr(0, equals), text.substr(equals + 1));
  }
}

}  // namespace wisp
