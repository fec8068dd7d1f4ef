// A compression method of a run: its name, compressor and scope. A value that owns its compressor.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compression/compressor.h"
#include "distributed/exchange/cut.h"

namespace wisp {

/// A compressor with the name and scope that the configuration gave it.
struct Method {
  std::string name;
  std::unique_ptr<Compressor> compressor;
  Scope scope = Scope::layer;
};

/// By index; they live as long as the methods.
inline std::vector<Compressor*> compressors_of(std::span<const Method> methods) {
  std::vector<Compressor*> all;
  for (const Method& method : methods) all.push_back(method.compressor.get());
  return all;
}

inline std::vector<CutMethod> cut_methods(std::span<const Method> methods) {
  std::vector<CutMethod> all;
  for (const Method& method : methods)
    all.push_back({method.scope, method.compressor->traits().decay == Home::compressor});
  return all;
}

}  // namespace wisp
