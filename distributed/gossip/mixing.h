// The graph over the workers of a gossip method, and its mixing matrix W, symmetric and doubly
// stochastic. Pure arithmetic; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

class Mixing {
 public:
  /// W_ij = 1 / (1 + max(degree_i, degree_j)) on the edges, and the rest on the diagonal
  /// (Metropolis and Hastings; 1/3 each on a ring). `graph` is ring, torus (as square as the number
  /// allows), complete, a list of edges ("0-1, 1-2"), or a file with a list. A file has edges "0-1"
  /// or "0 1", one or more per line, and # comments. Throws Error for a duplicate edge, an edge
  /// from a rank to itself or to a rank that does not exist, and a graph that is not connected.
  Mixing(const std::string& graph, int workers);

  /// The neighbours of `rank`, ascending, without itself.
  const std::vector<int>& neighbours(int rank) const {
    return neighbours_[static_cast<size_t>(rank)];
  }
  /// The largest number of neighbours of a worker.
  int degree() const;
  double weight(int i, int j) const;
  /// 1 - |second largest eigenvalue|, in [0, 1]. The workers agree faster the larger it is.
  double spectral_gap() const;
  /// ‖I - W‖₂, in [0, 2].
  double distance_from_identity() const { return 1.0 - eigenvalues_.back(); }
  /// A description such as "ring of 4 workers, degree 2, spectral gap 0.667".
  std::string describe() const;
  /// A hash that is equal for equal matrices.
  uint64_t hash() const;

 private:
  void join(int i, int j);
  void check_connected() const;

  int workers_;
  std::string name_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<double> eigenvalues_;  // eigenvalues of W, descending
};

/// The consensus step with which CHOCO-SGD is proven to converge, for a code with E|Q(x) - x|² <=
/// (1 - delta) |x|². Source: Koloskova et al. 2019, theorem 2.
double choco_theory_step(const Mixing& mixing, double delta);

}  // namespace wisp
