// Who talks to whom in a gossip method, and how much of it counts: a graph over the workers and its
// mixing matrix W, symmetric and doubly stochastic. Pure arithmetic; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wisp {

class Mixing {
 public:
  /// W_ij = 1 / (1 + max(degree_i, degree_j)) on the edges, the rest on the diagonal (Metropolis
  /// and Hastings; 1/3 each on a ring). `graph` is ring, torus (as square as the number allows),
  /// complete, a list of edges ("0-1, 1-2"), or a file of such: an edge a line or more, "0-1" or "0
  /// 1", # comments. Throws Error for an edge that is given twice, joins a rank with itself or a
  /// rank that does not exist, and for a graph in several parts.
  Mixing(const std::string& graph, int workers);

  /// Ascending, without `rank` itself.
  const std::vector<int>& neighbours(int rank) const {
    return neighbours_[static_cast<size_t>(rank)];
  }
  /// Of the worker that has most neighbours.
  int degree() const;
  double weight(int i, int j) const;
  /// 1 - |second largest eigenvalue|, in [0, 1]: how fast the workers agree.
  double spectral_gap() const;
  /// ‖I - W‖₂, in [0, 2].
  double distance_from_identity() const;
  /// "ring of 4 workers, degree 2, spectral gap 0.667".
  std::string describe() const;
  /// Equal for equal matrices.
  uint64_t hash() const;

 private:
  void join(int i, int j);
  void check_connected() const;

  int workers_;
  std::string name_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<double> eigenvalues_;  // of W, descending
};

/// The consensus step with which CHOCO-SGD is proven to converge, for a code with E|Q(x) - x|² <=
/// (1 - delta) |x|². Source: Koloskova et al. 2019, theorem 2.
double choco_theory_step(const Mixing& mixing, double delta);

}  // namespace wisp
