// Signs of a field without its silent elements, used by 1-bit Adam. Silent elements are sent as +
// and are read as 0. A plane of bits marks the other elements as live. For kernels on any device.
#pragma once

#include "compression/quantize/sign_plane.h"

namespace wisp::live {

constexpr int64_t kRun = 4096;  // elements that one team adds up

struct Norm {
  double squares;
  int64_t count;
};

/// Adds new numbers to e for live elements, which gives the numbers to compress, and computes the
/// norm of each run. The new numbers are a worker's share of moment and gradient or, at the owner,
/// the sum. If the gradient is not finite, the worker compresses its share of the moment alone, and
/// e stays as it is.
template <bool kOwner>
struct Compensate {
  struct Shared {
    float x[group::kSize];
    group::Codes speaks;
  };
  const float* gradient;  // null if it is not finite
  const float* moment;    // null at the owner, where `live` is known
  float keep, share;
  float* error;
  Plane<1> live;
  Norm* norm;

  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t run, Shared& shared) const {
    const float* x = shared.x;
    uint8_t* speaks = shared.speaks.code;
    typename Team::template PerLane<double> squares;
    typename Team::template PerLane<int32_t> count;
    const int64_t end = live.numel - run * kRun < kRun ? live.numel : (run + 1) * kRun;
    for (int64_t at = run * kRun; at < end; at += group::kSize) {
      const int64_t size = group::size_at(at, end);
      take(team, at, size, speaks, shared.x);
      team.lanes([&](int64_t j) {
        group::gather<group::Add>(
            squares, j, [&](int64_t k) { return x[k]; }, group::Square());
      });
      team.lanes([&](int64_t j) {
        count[j] += speaks[j] + speaks[j + group::kLanes] + speaks[j + 2 * group::kLanes] +
                    speaks[j + 3 * group::kLanes];
      });
    }
    const double sum = team.fold(squares, group::Add());
    const int64_t all = team.sum(count);
    team.once([&] { norm[run] = {sum, all}; });
  }
  /// Finds the live elements of a group. x = their numbers, 0 for silent elements.
  template <class Team>
  WISP_HD void take(const Team& team, int64_t at, int64_t size, uint8_t* speaks, float* x) const {
    group::prefetch(error + at);
    if (gradient) group::prefetch(gradient + at);
    if (!kOwner) group::prefetch(moment + at);
    if constexpr (kOwner) {
      live.load(team, at / group::kSize, speaks);
    } else {
      group::fill(team, size, speaks,
                  [&](int64_t j) { return static_cast<uint8_t>(moment[at + j] != 0.0f); });
      live.store(team, at / group::kSize, speaks);
    }
    if (gradient && size == group::kSize) {
      team.lanes([&](int64_t lane) {  // a lane reads its four elements before it writes one
        float old[group::kSize / group::kLanes], value[group::kSize / group::kLanes];
        for (int e = 0; e < group::kSize / group::kLanes; ++e) {
          const int64_t i = at + lane + e * group::kLanes;
          old[e] = error[i];
          value[e] = old[e] + number(i);
        }
        for (int e = 0; e < group::kSize / group::kLanes; ++e) {
          const int64_t j = lane + e * group::kLanes;
          x[j] = speaks[j] ? value[e] : 0.0f;
          error[at + j] = speaks[j] ? value[e] : old[e];
        }
      });
    } else if (gradient) {
      team.each(size, [&](int64_t j) {
        const float old = error[at + j];
        const float value = old + number(at + j);
        x[j] = speaks[j] ? value : 0.0f;
        error[at + j] = speaks[j] ? value : old;
      });
    } else {
      group::each(team, size, [&](int64_t j) { x[j] = keep * moment[at + j]; });
    }
    if (size < group::kSize) team.each(group::kSize - size, [&](int64_t j) { x[size + j] = 0.0f; });
  }
  WISP_HD float number(int64_t i) const {
    if constexpr (kOwner) return gradient[i];
    return keep * moment[i] + share * gradient[i];
  }
};

struct AddNorms {
  using Value = Norm;
  const Norm* norm;
  WISP_HD Norm identity() const { return {0.0, 0}; }
  WISP_HD Norm map(int64_t i) const { return norm[i]; }
  WISP_HD Norm combine(Norm a, Norm b) const { return {a.squares + b.squares, a.count + b.count}; }
};

/// Writes the signs of numbers, + for silent elements.
struct WriteSigns {
  using Shared = group::Codes;
  const float* numbers;
  float* error;  // the numbers, reduced to the unsent part; null: nothing is kept
  const float* scale;
  Plane<1> live, plane;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t group, Shared& codes) const {
    const int64_t at = group * group::kSize;
    const float high = *scale;
    uint8_t* code = codes.code;
    group::prefetch(numbers + at);
    live.load(team, group, code);
    const auto read = [&](int64_t j) { return numbers[at + j]; };
    const auto positive = [&](int64_t j, float x) { return !code[j] || x >= 0.0f; };
    const auto keep = [&](int64_t j, float x) {
      const float part = positive(j, x) ? high : -high;
      if (error) error[at + j] = x - (code[j] ? part : 0.0f);
    };
    const int64_t size = group::size_at(at, plane.numel);
    if (size == group::kSize) return plane.store_bits(team, group, read, positive, keep);
    group::fill(team, size, code, [&](int64_t j) {
      const float x = read(j);
      keep(j, x);
      return static_cast<uint8_t>(positive(j, x));
    });
    plane.store(team, group, code);
  }
};

/// into[i] = ± *scale, 0 for silent elements.
struct ReadSigns {
  struct Shared {
    group::Codes positive, speaks;
  };
  ReadPlane plane;
  Plane<1> live;
  const float* scale;
  float* into;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t group, Shared& shared) const {
    const int64_t at = group * group::kSize;
    const uint8_t* positive = shared.positive.code;
    const uint8_t* speaks = shared.speaks.code;
    plane.load(team, group, shared.positive.code);
    live.load(team, group, shared.speaks.code);
    const float high = *scale;
    group::give(
        team, group::size_at(at, plane.numel),
        [&](int64_t j) {
          const float sent = positive[j] ? high : -high;
          return speaks[j] ? sent : 0.0f;
        },
        1.0f, false, into + at);
  }
};

}  // namespace wisp::live
