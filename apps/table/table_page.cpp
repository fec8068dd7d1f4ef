#include "apps/table/table_page.h"

#include <fmt/format.h>

#include "apps/report/page/html_text.h"
#include "apps/report/page/style.h"

namespace wisp {
namespace {

std::string row(const std::vector<std::string>& cells, const char* tag) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += fmt::format("<{0}>{1}</{0}>", tag, html_text(cell));
  return html + "</tr>\n";
}

}  // namespace

std::string table_page(const TableText& text, const std::string& plot) {
  const std::string title = html_text(text.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      title, page_style());
  html += plot + "<div class=\"wide\"><table>\n" + row(text.headings, "th");
  for (const auto& cells : text.rows) html += row(cells, "td");
  html += "</table></div>\n";
  for (const std::string& remark : text.remarks)
    html += "<p class=\"soft\">" + html_text(remark) + "</p>\n";
  return html + "</body>\n</html>\n";
}

}  // namespace wisp
