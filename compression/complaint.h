// Defects of a received payload. Kernels that read a payload detect defects on any device, and
// never access memory out of bounds because of them. A kernel writes its complaint to a device
// word; the host reads the word once the stream has passed the kernel. Values; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace wisp {

/// A kind of defect. A number N accompanies it.
enum class Wrong : int64_t {
  count,     // a count of N entries, which the field cannot have or the payload does not hold
  end,       // the content ends at byte N, but the payload does not
  scale,     // a scale that is not a valid number
  code,      // chunk N is not a sequence of codes
  position,  // entry N lies beyond its field
  order      // entry N does not follow the one before it
};

/// One defect. If a payload has several, the reported one has the lowest rank, then the first kind
/// in the order of Wrong, because a wrong count causes other defects. So the report does not depend
/// on timing.
struct Complaint {
  int64_t from, field;  // rank (-1: a sum), field of the unit
  Wrong what;
  int64_t number;

  /// The complaint as a positive word. Of two complaints, the one with the larger word is reported.
  /// Rank is capped at 16382, field at 16383 and number at 2^31 - 1.
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

/// A device word for complaints about one payload, used by kernels.
struct Complaints {
  int64_t* word = nullptr;  // null: complaints are dropped
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

/// The complaint in a word as a sentence; empty if the word is 0.
std::string complaint_in(int64_t word);

}  // namespace wisp
