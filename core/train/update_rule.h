// What a synchronizer left in the gradient arena for a segment, and so what the optimizer does with
// it.
#pragma once

namespace wisp {

enum class UpdateRule {
  gradient,  // a gradient: the optimizer applies its whole rule
  momentum,  // a momentum: it replaces the optimizer's, decay still applies
  update     // subtracted times the learning rate as it is: momentum and decay are in it already
};

}  // namespace wisp
