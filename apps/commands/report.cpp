#include "apps/report/report.h"

#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/report/page/page.h"
#include "core/io/output_file.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string html;
};

void run_report(const ReportArguments& arguments) {
  std::vector<RunRecord> runs;
  for (const std::string& path : arguments.runs) runs.push_back(RunRecord::read(path));
  if (!arguments.html.empty()) write_file(arguments.html, report_page(runs), Unread::awaited);
  write_out(report_table(runs));
}

}  // namespace

void add_report(CLI::App& program) {
  const auto [command, arguments] =
      add_command<ReportArguments>(program, "report", "compare runs", run_report);
  command.add_option("runs", arguments.runs, "run directories")->required();
  command.add_option("--html", arguments.html, "write a page with curves, bytes and time lanes");
  command.footer("Example:\n  wisp report runs/dense runs/dgc --html report.html");
}

}  // namespace wisp
