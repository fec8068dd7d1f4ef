// Text for a cell of a Markdown table. Any thread.
#pragma once

#include <string>

namespace wisp {

/// The text with each '|' escaped.
inline std::string markdown_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

}  // namespace wisp
