#include "distributed/gossip/mixing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

constexpr int64_t kMostGraphBytes = int64_t{16} << 20;

/// Descending eigenvalues of a symmetric n x n matrix, by Jacobi rotations (Golub & Van Loan, 8.5).
std::vector<double> eigenvalues(std::vector<double> a, int n) {
  const auto at = [&](int i, int j) -> double& { return a[static_cast<size_t>(i * n + j)]; };
  for (int sweep = 0; sweep < 64; ++sweep) {
    double off = 0.0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) off += at(i, j) * at(i, j);
    if (off < 1e-26) break;
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        if (at(p, q) == 0.0) continue;
        const double theta = (at(q, q) - at(p, p)) / (2.0 * at(p, q));
        const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1.0 / std::hypot(t, 1.0), s = t * c;
        for (int k = 0; k < n; ++k) {
          const double kp = at(k, p), kq = at(k, q);
          at(k, p) = c * kp - s * kq;
          at(k, q) = s * kp + c * kq;
        }
        for (int k = 0; k < n; ++k) {
          const double pk = at(p, k), qk = at(q, k);
          at(p, k) = c * pk - s * qk;
          at(q, k) = s * pk + c * qk;
        }
      }
    }
  }
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(at(i, i));
  std::sort(values.rbegin(), values.rend());
  return values;
}

std::string without_comments(const std::string& lines) {
  std::string text;
  std::istringstream file(lines);
  for (std::string line; std::getline(file, line);) text += line.substr(0, line.find('#')) + "\n";
  return text;
}

/// The edges of a text such as "0-1, 1 2\n2-0", in the written order.
std::vector<std::pair<int, int>> read_edges(const std::string& graph, const std::string& text) {
  std::string plain = text;
  for (char& c : plain) {
    if (c == '-' || c == ',' || c == ';') c = ' ';
  }
  std::istringstream words(plain);
  std::vector<int> ranks;
  for (std::string word; words >> word;) {
    WISP_CHECK(word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos,
               "gossip.graph = \"", graph, "\": '", word,
               "' is no rank; expected ring, torus, complete, edges such as \"0-1, 1-2\", or a "
               "file of them");
    ranks.push_back(std::stoi(word));
  }
  WISP_CHECK(ranks.size() % 2 == 0, "gossip.graph = \"", graph, "\": edge ", ranks.size() / 2,
             " has one end only, ", ranks.back());
  std::vector<std::pair<int, int>> edges;
  for (size_t i = 0; i < ranks.size(); i += 2) edges.emplace_back(ranks[i], ranks[i + 1]);
  return edges;
}

/// The largest divisor up to the square root.
int torus_rows(int workers) {
  int rows = 1;
  for (int r = 1; r * r <= workers; ++r) {
    if (workers % r == 0) rows = r;
  }
  return rows;
}

}  // namespace

Mixing::Mixing(const std::string& graph, int workers)
    : workers_(workers), name_(graph), neighbours_(static_cast<size_t>(workers)) {
  WISP_CHECK(workers >= 1, "a graph of ", workers, " workers, expected 1 or more");
  const int n = workers;
  if (graph == "ring") {
    for (int i = 0; i < n; ++i) join(i, (i + 1) % n);
  } else if (graph == "complete") {
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) join(i, j);
  } else if (graph == "torus") {
    const int rows = torus_rows(n), columns = n / rows;
    name_ = fmt::format("torus {} x {}", rows, columns);
    for (int i = 0; i < n; ++i) {
      const int row = i / columns, column = i % columns;
      join(i, row * columns + (column + 1) % columns);
      join(i, (row + 1) % rows * columns + column);
    }
  } else {
    std::error_code none_there;  // edges may be longer than a name may be
    WISP_CHECK(!std::filesystem::is_directory(graph, none_there), "gossip.graph = \"", graph,
               "\" is a directory, expected a file of edges");
    const bool file = std::filesystem::exists(graph, none_there);
    const std::string text =
        file ? without_comments(naming(concat("gossip.graph = \"", graph, '"'),
                                       [&] { return read_whole_file(graph, kMostGraphBytes); }))
             : graph;
    name_ = file ? graph : "graph";
    std::set<std::pair<int, int>> known;
    const auto edges = read_edges(graph, text);
    WISP_CHECK(n == 1 || !edges.empty(), "gossip.graph = \"", graph, "\" has no edges");
    for (const auto& [i, j] : edges) {
      const std::string edge = fmt::format("gossip.graph = \"{}\": edge {}-{}", graph, i, j);
      WISP_CHECK(i < n && j < n, edge, " names a rank that is none of the ", n, " workers (0 to ",
                 n - 1, ")");
      WISP_CHECK(i != j, edge, " joins a rank with itself; its own weight follows from the others");
      WISP_CHECK(known.insert(std::minmax(i, j)).second, edge,
                 " is given twice; an edge counts in both directions");
      join(i, j);
    }
  }
  for (std::vector<int>& own : neighbours_) std::sort(own.begin(), own.end());
  check_connected();
  std::vector<double> matrix;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) matrix.push_back(weight(i, j));
  eigenvalues_ = eigenvalues(std::move(matrix), n);
}

/// Adds an edge once. Small rings and tori repeat edges, or join a rank with itself.
void Mixing::join(int i, int j) {
  std::vector<int>& own = neighbours_[static_cast<size_t>(i)];
  if (i == j || std::count(own.begin(), own.end(), j) > 0) return;
  own.push_back(j);
  neighbours_[static_cast<size_t>(j)].push_back(i);
}

void Mixing::check_connected() const {
  std::set<int> reached{0};
  std::vector<int> open{0};
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    for (const int j : neighbours(i)) {
      if (reached.insert(j).second) open.push_back(j);
    }
  }
  for (int i = 0; i < workers_; ++i) {
    WISP_CHECK(reached.count(i), "gossip.graph: no path leads from rank 0 to rank ", i,
               ", so the workers would never agree; add edges between the parts");
  }
}

int Mixing::degree() const {
  const auto count = [](const std::vector<int>& own) { return std::ssize(own); };
  return static_cast<int>(std::ssize(std::ranges::max(neighbours_, {}, count)));
}

double Mixing::weight(int i, int j) const {
  if (i == j) {
    double rest = 1.0;
    for (const int k : neighbours(i)) rest -= weight(i, k);
    return rest;
  }
  const std::vector<int>& own = neighbours(i);
  if (!std::binary_search(own.begin(), own.end(), j)) return 0.0;
  return 1.0 / static_cast<double>(1 + std::max(own.size(), neighbours(j).size()));
}

double Mixing::spectral_gap() const {
  if (workers_ == 1) return 1.0;
  return 1.0 - std::max(std::abs(eigenvalues_[1]), std::abs(eigenvalues_.back()));
}

std::string Mixing::describe() const {
  return fmt::format("{} of {} workers, degree {}, spectral gap {:.3g}", name_, workers_, degree(),
                     spectral_gap());
}

uint64_t Mixing::hash() const {
  uint64_t value = hash_text("mixing");
  for (int i = 0; i < workers_; ++i) {
    for (const int j : neighbours(i)) value = hash_number(static_cast<uint64_t>(j), value);
    value = hash_number(static_cast<uint64_t>(workers_), value);
  }
  return value;
}

double choco_theory_step(const Mixing& mixing, double delta) {
  const double rho = mixing.spectral_gap();
  const double beta2 = std::pow(mixing.distance_from_identity(), 2);
  return rho * rho * delta /
         (16.0 * rho + rho * rho + 4.0 * beta2 + 2.0 * rho * beta2 - 8.0 * rho * delta);
}

}  // namespace wisp
