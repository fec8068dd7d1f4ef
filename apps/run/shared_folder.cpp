#include "apps/run/shared_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/io/output_file.h"
#include "distributed/communicator/deadline.h"
#include "distributed/communicator/place.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

constexpr double kPatienceS = 1.0;  // a network's file system may show a new file late
constexpr double kPauseUs = 50e3;
constexpr int kNamed = 2;  // ranks that an error names; it travels in a small message

/// The end of a path, as plain bytes that can be sent to other ranks.
using PathBytes = std::array<char, 180>;
PathBytes bytes_of(const std::string& path) {
  std::error_code failure;
  const fs::path whole = fs::absolute(path, failure);
  std::string text = failure ? path : whole.string();
  PathBytes bytes{};
  if (text.size() >= bytes.size()) text = "..." + text.substr(text.size() + 4 - bytes.size());
  std::ranges::copy(text, bytes.begin());
  return bytes;
}

/// What a rank tells the others.
struct Viewer {
  Place place;
  PathBytes path{};
  int64_t token = 0;  // rank 0's: the number of its file
  int64_t sees = 0;

  std::string words() const { return concat(path.data(), " on ", place.host.data()); }
};

std::vector<Viewer> viewers_of_all(Communicator& communicator, const Viewer& own) {
  std::vector<Viewer> viewers(static_cast<size_t>(communicator.size()));
  std::vector<Bytes> in;
  for (Viewer& viewer : viewers)
    in.push_back({reinterpret_cast<std::byte*>(&viewer), sizeof viewer});
  const ConstBytes out{reinterpret_cast<const std::byte*>(&own), sizeof own};
  communicator.all_gather({&out, 1}, in)->wait();
  return viewers;
}

/// A number that no other process takes at this time on this machine.
int64_t draw_token(const Place& place) {
  const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  return (now ^ place.process << 40) & INT64_MAX;
}

/// Rank 0's file, which the others look for. It goes with this object.
struct Token {
  std::string path;
  explicit Token(std::string of_path) : path(std::move(of_path)) { write_file(path, ""); }
  ~Token() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
};

bool appears(const std::string& path) {
  std::error_code ignored;
  for (double left_us = kPatienceS * 1e6; !fs::exists(path, ignored); left_us -= kPauseUs) {
    if (left_us <= 0.0) return false;
    sleep_us(kPauseUs);
  }
  return true;
}

/// The ranks that do not see rank 0's directory, in words; empty if all see it.
std::string complaint(std::span<const Viewer> viewers) {
  std::string blind;
  int count = 0;
  for (size_t rank = 0; rank < viewers.size(); ++rank) {
    if (viewers[rank].sees || ++count > kNamed) continue;
    blind += concat("\n  rank ", rank, " has ", viewers[rank].words());
  }
  if (count == 0) return {};
  if (count > kNamed) blind += concat("\n  and ", count - kNamed, " more");
  return concat("all ranks have to see one run directory, rank 0's: ", viewers[0].words(), blind,
                "\ngive all of them the same --out, in a folder that their machines share");
}

}  // namespace

void check_shared_folder(const TrainOptions& options, const RunDirectory& directory) {
  if (!world().processes()) return;
  run_workers(world().size, {.threads = 1, .timeout_s = options.timeout_s}, [&](Worker& worker) {
    Viewer own{.place = Place::own(), .path = bytes_of(directory.path())};
    const auto file = [&](int64_t token) {
      return directory.file(unfinished_name(std::to_string(token)));
    };
    std::optional<Token> token;
    if (worker.rank == 0) {
      own.token = draw_token(own.place);
      token.emplace(file(own.token));
    }
    own.token = viewers_of_all(worker.communicator, own)[0].token;
    own.sees = appears(file(own.token));
    const std::string wrong = complaint(viewers_of_all(worker.communicator, own));
    if (wrong.empty()) return;
    if (worker.rank == 0) worker.communicator.abort(wrong);
    worker.communicator.barrier()->wait();  // ends when rank 0 has reported
  });
}

}  // namespace wisp
