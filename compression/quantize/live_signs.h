// Signs of a field that has silent elements, which are no part of it: they are sent as + and read
// as 0. A plane of bits says which elements are live. What 1-bit Adam compresses.
#pragma once

#include "compression/quantize/sign_plane.h"

namespace wisp::live {

constexpr int64_t kRun = 4096;  // elements a call adds up
static_assert(kRun / group::kSize < 256);

struct Norm {
  double squares;
  int64_t count;
};

/// e <- the numbers to compress, but for silent elements, and the norm of each run of them: a
/// worker's share of the moment, or, at its owner, the sum. Without a finite gradient they are a
/// share of the moment alone, and e stays as it is.
template <bool kOwner>
struct Compensate {
  const float* gradient;  // or null: it is not finite
  const float* moment;    // null at the owner, where `live` is known
  float keep, share;
  float* error;
  Plane<1> live;
  Norm* norm;

  WISP_HD void operator()(int64_t run) const {
    double lane[group::kLanes] = {};
    uint8_t counted[group::kSize] = {};  // groups where the element speaks
    const int64_t end = live.numel - run * kRun < kRun ? live.numel : (run + 1) * kRun;
    for (int64_t at = run * kRun; at < end; at += group::kSize) {
      float x[group::kSize] = {};
      uint8_t speaks[group::kSize] = {};
      const int64_t size = group::size_at(at, end);
      if (size == group::kSize) {
        take(at, group::kSize, speaks, x);
      } else {
        take(at, size, speaks, x);
      }
      for (int64_t j = 0; j < group::kSize; ++j)
        counted[j] = static_cast<uint8_t>(counted[j] + speaks[j]);
      group::gather<group::Add>(
          lane, [&](int64_t j) { return x[j]; }, group::Square());
    }
    int64_t count = 0;
    for (int64_t j = 0; j < group::kSize; ++j) count += counted[j];
    norm[run] = {group::fold<group::Add>(lane), count};
  }
  /// Which elements of a group are not silent, and x = the numbers of those, 0 of others.
  WISP_HD void take(int64_t at, int64_t size, uint8_t* speaks, float* x) const {
    group::prefetch(error + at);
    if (gradient) group::prefetch(gradient + at);
    if (!kOwner) group::prefetch(moment + at);
    if constexpr (kOwner) {
      live.load(at / group::kSize, speaks);
    } else {
      for (int64_t j = 0; j < size; ++j) speaks[j] = moment[at + j] != 0.0f;
      live.store(at / group::kSize, speaks);
      if (!gradient) {
        for (int64_t j = 0; j < size; ++j) x[j] = keep * moment[at + j];
        return;
      }
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) {
      const float old = error[at + j];
      const float value = old + number(at + j);
      x[j] = speaks[j] ? value : 0.0f;
      error[at + j] = speaks[j] ? value : old;
    }
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

/// The signs of numbers, + for silent elements.
struct WriteSigns {
  const float* numbers;
  float* error;  // the numbers, of which it keeps what does not travel; or null: it stays
  const float* scale;
  Plane<1> live, plane;
  WISP_HD void operator()(int64_t group) const {
    const int64_t at = group * group::kSize;
    const int64_t size = group::size_at(at, plane.numel);
    if (size == group::kSize) {
      write(group, at, group::kSize);
    } else {
      write(group, at, size);
    }
  }
  WISP_HD void write(int64_t group, int64_t at, int64_t size) const {
    group::prefetch(numbers + at);
    uint8_t speaks[group::kSize];
    live.load(group, speaks);
    float x[group::kSize] = {};
    for (int64_t j = 0; j < size; ++j) x[j] = speaks[j] ? numbers[at + j] : 0.0f;
    store_signs(plane, group, size, x);
    if (!error) return;
    const float high = *scale;
    for (int64_t j = 0; j < size; ++j) {
      const float part = x[j] >= 0.0f ? high : -high;
      error[at + j] -= speaks[j] ? part : 0.0f;
    }
  }
};

/// into[i] = ± *scale, 0 for silent elements.
struct ReadSigns {
  ReadPlane plane;
  Plane<1> live;
  const float* scale;
  float* into;
  WISP_HD void operator()(int64_t group) const {
    const int64_t at = group * group::kSize;
    uint8_t positive[group::kSize], speaks[group::kSize];
    plane.load(group, positive);
    live.load(group, speaks);
    const float high = *scale;
    float value[group::kSize];
    for (int64_t j = 0; j < group::kSize; ++j) {
      const float sent = positive[j] ? high : -high;
      value[j] = speaks[j] ? sent : 0.0f;
    }
    group::give(value, group::size_at(at, plane.numel), 1.0f, false, into + at);
  }
};

}  // namespace wisp::live
