// "none": the method leaves gradients dense, all-reduced in place; the code sends 32-bit numbers
// exactly.
#include "compression/methods/methods.h"

namespace wisp {
namespace {

const CompressorRegistration none_method("none", "dense: all-reduce of the uncompressed gradients",
                                         [](Config&, const CompressorSetup&) {
                                           return std::unique_ptr<Compressor>();
                                         });
const Registration<Code, Config&, const CompressorSetup&> none_code(
    "none", "exact 32-bit numbers", [](Config&, const CompressorSetup&) { return make_exact(); });

}  // namespace
}  // namespace wisp
