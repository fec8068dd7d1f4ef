// Test controls of the stand-in for cuDNN (include/cudnn.h). It computes with the reference backend
// in tasks of the stream, and refuses what a test tells it to refuse. One thread at a time.
#pragma once

#include <cudnn.h>

#include <functional>
#include <vector>

#include "core/tensor/dtype.h"

namespace wisp::emulated {

/// A call of the stand-in that computes.
struct CudnnCall {
  int algorithm = 0;  // 0 and 1 give the same bits each time, 2 does not
  DType dtype = DType::f32;
  bool accumulate = false;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

struct CudnnControls {
  /// The status of a call. The stand-in computes if it is success.
  std::function<cudnnStatus_t(const CudnnCall&)> status_of = [](const CudnnCall&) {
    return CUDNN_STATUS_SUCCESS;
  };
  cudnnStatus_t of_create = CUDNN_STATUS_SUCCESS;  // status of cudnnCreate
  std::vector<CudnnCall> done;                     // calls that computed
  int handles = 0;                                 // handles that exist
};
CudnnControls& cudnn_controls();

}  // namespace wisp::emulated
