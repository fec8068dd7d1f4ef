// A part of a model: named parameters, buffers and child modules. Children are ordinary members
// that a module registers by name in its constructor. A module must therefore stay at the address
// where it was built. Used by one thread.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/parameter.h"

namespace wisp {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// All parameters of this module and its children, in order of registration. The call completes
  /// their names to full paths, so call it on the root, once, before FlatParameters takes them.
  std::vector<Parameter*> parameters() { return collect<Parameter>(&Module::parameters_); }
  std::vector<Buffer*> buffers() { return collect<Buffer>(&Module::buffers_); }

 protected:
  /// Registers a parameter of this module. `kind` is that of its layer, for policies. Throws Error
  /// for a shape without elements.
  Parameter& parameter(std::string name, Shape shape, Init init, bool decay = true,
                       std::string kind = {}) {
    WISP_CHECK(shape.numel() > 0, "parameter ", name, " is ", shape, ", expected no extent of 0");
    return parameters_.emplace_back(
        Parameter{std::move(name), shape, init, decay, {}, false, std::move(kind)});
  }
  /// Registers a buffer, with every element `initial`.
  Buffer& buffer(std::string name, Shape shape, double initial) {
    return buffers_.emplace_back(Buffer{std::move(name), shape, initial, {}});
  }
  /// Registers a member as a child. Its parameters get the prefix "NAME.".
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

  std::deque<Parameter> parameters_;  // a deque keeps references valid
  std::deque<Buffer> buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
};

}  // namespace wisp
