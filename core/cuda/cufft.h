// Real transforms by cuFFT, on CUDA streams. They belong to their stream's thread.
#pragma once

#include "core/real_fft.h"
#include "core/workspace.h"

namespace wisp::cuda {

std::unique_ptr<RealFft> make_cufft(Workspace& workspace);

}  // namespace wisp::cuda
