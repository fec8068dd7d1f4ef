// The frame of an HTML page for a browser without network or script: style sheet and tables. All
// text is HTML. Any thread.
#pragma once

#include <string>
#include <vector>

namespace wisp {

constexpr int kRunColours = 8;  // the classes s0 to s7; later runs have them again, dashed

/// The style is for light and dark (as the reader's system has it), narrow screens and print. The
/// colours of runs are those of Okabe and Ito with black and yellow replaced; they differ for any
/// colour vision.
std::string html_page(const std::string& title, const std::string& body);

std::string html_row(const std::vector<std::string>& cells, const char* tag = "td");
std::string html_table(const std::string& rows);

}  // namespace wisp
