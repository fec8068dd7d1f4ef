#include "apps/table/table_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/io/config.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScales[] = {"small", "paper"};

constexpr size_t kMostBytes = 200;  // of a row's name, to which files add a seed and ".log"

/// An error at a key of the file: "file:line: what".
template <class... Parts>
[[noreturn]] void fail(const Config& at, const std::string& key, const Parts&... parts) {
  throw Error(concat(at.where(key), ": ", parts...));
}

/// Whether a name can be part of a file's name.
bool is_file_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

void bind_optional(Config& config, const std::string& key, std::optional<double>& value,
                   const std::string& meaning) {
  double number = 0.0;
  config.bind(key, number, meaning);
  if (config.given(key)) value = number;
}

TableScale read_scale(Config config, const std::string& name, const std::string& folder) {
  TableScale scale{.name = name};
  config.bind("config", scale.config, "path of the config file, from the table's folder");
  config.bind("overrides", scale.overrides, "key=value, of all rows");
  config.bind("changes", scale.changes, "how it differs from the paper");
  config.bind("samples", scale.samples, "training samples, of texts tokens");
  bind_optional(config, "target", scale.target, "score whose time is modelled");
  config.finish();
  const std::string path = (fs::path(folder) / scale.config).lexically_normal().string();
  if (!fs::is_regular_file(path)) fail(config, "config", "there is no config file ", path);
  scale.config = path;
  return scale;
}

TableRow read_row(Config config) {
  TableRow row;
  config.bind("name", row.name, "name of the row");
  config.bind("overrides", row.overrides, "key=value");
  config.bind("small", row.small, "more overrides at the small scale");
  config.bind("paper", row.paper, "more overrides at the paper's scale");
  bind_optional(config, "published", row.published, "the paper's score");
  bind_optional(config, "spread", row.spread, "published beside it, ±");
  config.bind("remark", row.remark, "a sentence below the table");
  config.finish();
  if (!is_file_name(row.name))
    fail(config, "name", "the row's name '", row.name,
         "' names directories, expected letters, digits, '-', '_' and '.'");
  if (row.name.size() > kMostBytes)
    fail(config, "name", "the row's name has ", row.name.size(),
         " characters, which is too long for the names of its files, expected ", kMostBytes,
         " at most");
  return row;
}

/// The folder of tables above `from`, or "".
std::string folder_above(fs::path from) {
  for (; !from.empty(); from = from.parent_path()) {
    for (const char* below : {"apps/tables", "share/wisp/tables"}) {
      if (fs::is_directory(from / below)) return (from / below).string();
    }
    if (from == from.root_path()) break;
  }
  return "";
}

std::string stem(const std::string& path) { return fs::path(path).stem().string(); }

}  // namespace

const TableScale& TableFile::scale(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const TableScale& scale : scales) {
    if (wanted.empty() || scale.name == wanted) return scale;
    names.push_back(scale.name);
  }
  throw Error(fmt::format("table {}: there is no scale '{}', expected {}", name, wanted,
                          fmt::join(names, " or ")));
}

size_t TableFile::dense_index() const {
  return static_cast<size_t>(std::ranges::find(rows, dense, &TableRow::name) - rows.begin());
}

std::string TableFile::run_name(size_t row, int64_t seed) const {
  return fmt::format("{}-s{}", rows[row].name, seed);
}

TableFile TableFile::read(const std::string& path) {
  Config config = Config::load(path, {});
  TableFile table{.name = stem(path)};
  config.bind("title", table.title, "what the table shows");
  config.bind("source", table.source, "paper and number of the table");
  config.bind("dense", table.dense, "name of the row that the others are compared with");
  config.bind("seeds", table.seeds, "seeds of each row");
  const std::string folder = fs::path(path).parent_path().string();
  for (const char* name : kScales) {
    Config scale = config.table(name, "how the rows are run");
    if (!scale.given_values().empty()) table.scales.push_back(read_scale(scale, name, folder));
  }
  for (const Config& row : config.rows("rows", "the rows of the table"))
    table.rows.push_back(read_row(row));
  config.finish();
  WISP_CHECK(!table.title.empty() && !table.source.empty(), path,
             ": a table needs a title and a source");
  WISP_CHECK(!table.seeds.empty(), path, ": a table needs seeds");
  for (const int64_t seed : table.seeds)
    WISP_CHECK(std::count(table.seeds.begin(), table.seeds.end(), seed) == 1, path, ": the seed ",
               seed, " is given twice");
  WISP_CHECK(!table.scales.empty(), path, ": a table needs a scale, [small] or [paper]");
  std::set<std::string> names;
  for (const TableRow& row : table.rows)
    WISP_CHECK(names.insert(row.name).second, path, ": two rows have the name ", row.name);
  if (names.count(table.dense) == 0)
    fail(config, "dense", "no row has the name '", table.dense, "', expected ",
         fmt::format("{}", fmt::join(names, ", ")));
  return table;
}

std::vector<std::string> overrides_of(const TableRow& row, const TableScale& scale,
                                      std::span<const std::string> more) {
  std::vector<std::string> all = scale.overrides;
  const std::vector<std::string>& at_scale = scale.name == "paper" ? row.paper : row.small;
  for (const std::vector<std::string>* some : {&row.overrides, &at_scale})
    all.insert(all.end(), some->begin(), some->end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void TableFile::take_seeds(int64_t count) {
  if (count == 0) return;
  seeds.resize(static_cast<size_t>(count));
  std::iota(seeds.begin(), seeds.end(), 1);
}

std::vector<std::string> known_tables() {
  std::string folder = folder_above(fs::current_path());
  if (folder.empty()) folder = folder_above(fs::read_symlink("/proc/self/exe").parent_path());
  std::vector<std::string> paths;
  if (folder.empty()) return paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string find_table(const std::string& name) {
  if (name.find('/') != name.npos || name.ends_with(".toml")) return name;
  std::vector<std::string> names;
  for (const std::string& path : known_tables()) {
    if (stem(path) == name) return path;
    names.push_back(stem(path));
  }
  throw Error(
      fmt::format("there is no table '{}', expected a file or one of: {}", name,
                  names.empty() ? "none was found" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace wisp
