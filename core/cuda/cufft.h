// Real transforms by cuFFT, on CUDA streams.
#pragma once

#include "core/real_fft.h"

namespace wisp::cuda {

std::unique_ptr<RealFft> make_cufft();

}  // namespace wisp::cuda
