// The matrices among ResNet-50's parameters, as low-rank methods see them.
#pragma once

#include "tests/support/matrices.h"

namespace wisp {

inline std::vector<Extents> resnet50_matrices() {
  std::vector<Extents> matrices = {{64, 3 * 49}, {1000, 2048}};
  int64_t in = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    matrices.push_back({4 * width, in});
    for (int block = 0; block < blocks; ++block) {
      matrices.insert(matrices.end(), {{width, in}, {width, width * 9}, {4 * width, width}});
      in = 4 * width;
    }
    width *= 2;
  }
  return matrices;
}

}  // namespace wisp
