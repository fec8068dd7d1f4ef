// A table as one HTML page, for a browser without network or script. Any thread.
#pragma once

#include <string>

#include "apps/table/table_text.h"

namespace wisp {

/// The page: the picture, the table and its remarks. All text is escaped; `plot` is SVG, or empty.
std::string table_page(const TableText& text, const std::string& plot);

}  // namespace wisp
