#include "core/real_fft.h"

namespace wisp {

std::unique_ptr<RealFft> make_cpu_fft() { return make_reference_fft(); }

}  // namespace wisp
