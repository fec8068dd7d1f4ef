// WISP_HD marks what kernels call: compiled for the host, and in a CUDA source for the device too.
#pragma once

#ifdef __CUDACC__
#define WISP_HD __host__ __device__
#else
#define WISP_HD
#endif
