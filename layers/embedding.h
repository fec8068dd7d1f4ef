// A table of vectors, looked up by number. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Embedding final : public Module {
 public:
  /// The table starts as `init` says.
  Embedding(int64_t entries, int64_t width, Init init)
      : weight_(parameter("weight", {entries, width}, init, /*decay=*/true, "embedding")) {}

  /// ids (N) i32 -> (N, width).
  Variable operator()(const Tensor& ids) const { return embedding(weight_.variable, ids); }

  /// (entries, width), for a layer that shares it.
  Parameter& weight() { return weight_; }

 private:
  Parameter& weight_;
};

}  // namespace wisp
