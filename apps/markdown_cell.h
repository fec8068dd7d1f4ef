// Text for a cell of a Markdown table. Any thread.
#pragma once

#include <string>

#include "core/io/visible_text.h"

namespace wisp {

/// The text on one line, as visible() writes it, with each '|' escaped.
inline std::string markdown_cell(const std::string& any) {
  std::string text = visible(any);
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

}  // namespace wisp
