// How the report's page looks.
#pragma once

namespace wisp {

/// CSS: light and dark as the reader's system has it, narrow screens, print. The eight colours of
/// runs are those of Okabe and Ito (black and yellow replaced), told apart with any colour vision.
const char* page_style();

}  // namespace wisp
