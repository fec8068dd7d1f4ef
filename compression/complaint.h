// What is wrong with a payload that came. The kernels that read it find out, on whatever device,
// and never read or write out of bounds for it; a device word keeps what they say, and whoever gave
// them the payload reads it when the stream has come so far. Values; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace wisp {

/// Beside it stands a number N.
enum class Wrong : int64_t {
  count,     // of N entries: that is not what its field can have, or what the payload holds
  end,       // the content ends at byte N, the payload does not
  scale,     // a scale that is none
  code,      // chunk N is no sequence of codes
  position,  // entry N lies beyond its field
  order      // entry N is not behind the one before
};

/// The complaint that stays of several is that of the lowest rank, and of that the first in the
/// order of Wrong, as a wrong count has others follow; so it depends on no thread's time.
struct Complaint {
  int64_t from, field;  // rank (-1: a sum), field of the unit
  Wrong what;
  int64_t number;

  /// As a word: more than 0, and the larger, the sooner it is told. What has no room there, from
  /// rank 16382, field 16383 and number 2^31 - 1 on, is told as that.
  WISP_HD int64_t word() const {
    const int64_t place =
        (capped(from + 1, 14) << 4 | static_cast<int64_t>(what)) << 14 | capped(field, 14);
    return INT64_MAX - (place << 31 | capped(number, 31));
  }
  static Complaint of(int64_t word);

 private:
  WISP_HD static int64_t capped(int64_t number, int bits) {
    const int64_t most = (int64_t{1} << bits) - 1;
    return number < most ? number : most;
  }
};

/// What a kernel complains to about a payload.
struct Complaints {
  int64_t* word = nullptr;  // null: nobody asks
  int64_t from = 0;

  WISP_HD void add(Wrong what, int64_t field, int64_t number) const {
    if (!word) return;
    const int64_t told = Complaint{from, field, what, number}.word();
#ifdef __CUDA_ARCH__
    atomicMax(reinterpret_cast<long long*>(word), static_cast<long long>(told));
#else
    int64_t held = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (held < told && !__atomic_compare_exchange_n(word, &held, told, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
#endif
  }
};

/// What a word says, as a sentence; empty if it is 0.
std::string complaint_in(int64_t word);

}  // namespace wisp
