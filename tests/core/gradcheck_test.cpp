#include "tests/support/gradcheck.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "core/loops/parallel.h"
#include "tests/support/tensors.h"

namespace wisp {
namespace {

struct Scale {
  const double* from;
  double* to;
  double factor;
  bool accumulate;
  WISP_HD void operator()(int64_t i) const {
    to[i] = (accumulate ? to[i] : 0.0) + factor * from[i];
  }
};

enum class Slot { honoured, always_written, always_added };

/// The op 2x with `claimed` as its derivative.
GradientCase doubling(double claimed, Slot use) {
  return {"doubling", "", {random_tensor({3}, 1)}, [claimed, use](const std::vector<Variable>& in) {
            Context& context = in[0].context();
            const Tensor y = context.empty({3}, DType::f64);
            parallel_for(context.stream, 3,
                         Scale{in[0].value().data<double>(), y.data<double>(), 2.0, false});
            return record(
                "doubling", y, {in[0]}, [&context, claimed, use](const Tensor& dy, Inputs& to) {
                  const GradSlot dx = to.slot(0);
                  const bool add =
                      use == Slot::honoured ? dx.accumulate : use == Slot::always_added;
                  parallel_for(context.stream, 3,
                               Scale{dy.data<double>(), dx.into.data<double>(), claimed, add});
                });
          }};
}

TEST(Gradcheck, AcceptsARightGradient) { expect_gradients(doubling(2.0, Slot::honoured)); }

TEST(Gradcheck, NoticesAnErrorOfTwoInAMillion) {
  EXPECT_NONFATAL_FAILURE(expect_gradients(doubling(2.000004, Slot::honoured)), "input 0, element");
}

TEST(Gradcheck, NoticesAGradientThatIsNotAdded) {
  EXPECT_NONFATAL_FAILURE(expect_gradients(doubling(2.0, Slot::always_written)), "accumulated");
}

TEST(Gradcheck, NoticesAGradientThatIsAddedToRubbish) {
  EXPECT_NONFATAL_FAILURE(expect_gradients(doubling(2.0, Slot::always_added)), "found nan");
}

}  // namespace
}  // namespace wisp
