// A table in words: cells and remarks, for terminals, Markdown pages and HTML. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/table/table_figures.h"

namespace wisp {

/// What a table prints. Cells are plain text.
struct TableText {
  std::string title;
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;  // one per row of the table
  std::vector<std::string> remarks;            // sentences and paragraphs below the table
};

/// "Published: SOURCE. Scale: small. CHANGES"
std::string provenance_of(const TableFile& table, const TableScale& scale);

/// The table of some results. A row without a run has dashes and "not run".
TableText text_of(const TableFile& table, const TableScale& scale,
                  std::span<const TableResult> results);

/// Markdown whose columns are aligned, so that it can be read as it is.
std::string to_markdown(const TableText& text);

/// A page: the picture, which is SVG or empty, the table and its remarks.
std::string to_html(const TableText& text, const std::string& plot);

}  // namespace wisp
