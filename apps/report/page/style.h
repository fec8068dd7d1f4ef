// The style sheet of the report's page. Any thread.
#pragma once

namespace wisp {

constexpr int kRunColours = 8;  // the classes s0 to s7; later runs have them again, dashed

/// CSS for light and dark (as the reader's system has it), narrow screens and print. The
/// colours of runs are those of Okabe and Ito with black and yellow replaced; they differ for any
/// colour vision.
const char* page_style();

}  // namespace wisp
