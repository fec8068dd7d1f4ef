// A part of a model: named parameters, buffers and child modules. Children are ordinary members; a
// module registers them by name in its constructor and so must stay where it was built.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/parameter.h"

namespace wisp {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// All parameters below this module in order of registration, their names completed to full
  /// paths. Call on the root, once, before FlatParameters takes them.
  std::vector<Parameter*> parameters() { return collect<Parameter>(&Module::parameters_); }
  std::vector<Buffer*> buffers() { return collect<Buffer>(&Module::buffers_); }

 protected:
  Parameter& parameter(std::string name, Shape shape, Init init, bool decay = true,
                       std::string kind = {}) {
    return parameters_.emplace_back(
        Parameter{std::move(name), shape, init, decay, {}, false, std::move(kind)});
  }
  Buffer& buffer(std::string name, Shape shape, double initial) {
    return buffers_.emplace_back(Buffer{std::move(name), shape, initial, {}});
  }
  void child(std::string name, Module& module) { children_.emplace_back(std::move(name), &module); }

 private:
  template <class T>
  std::vector<T*> collect(std::deque<T> Module::*member) {
    std::vector<T*> found;
    for (T& own : this->*member) found.push_back(&own);
    for (auto& [name, module] : children_) {
      for (T* below : module->collect(member)) {
        below->name = name + "." + below->name;
        found.push_back(below);
      }
    }
    return found;
  }

  std::deque<Parameter> parameters_;  // a deque: references stay valid
  std::deque<Buffer> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
};

}  // namespace wisp
