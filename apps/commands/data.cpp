#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/setup/prepared.h"
#include "apps/survey/data_survey.h"
#include "apps/survey/picture_files.h"
#include "apps/survey/survey_text.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct DataArguments {
  ConfigArguments config;
  std::string write;
  int64_t count = 16;
  bool json = false;
};

void run_data(const DataArguments& arguments) {
  Prepared prepared = arguments.config.prepare();
  prepared.load();
  // Written first, so that a write error is reported before all data is read.
  const bool write = !arguments.write.empty();
  const int64_t written = write ? write_pictures(prepared, arguments.count, arguments.write) : 0;
  const DataSurvey survey = survey_data(prepared);
  write_out(arguments.json ? survey_json(survey) : survey_table(survey));
  if (write && !arguments.json)
    write_out(fmt::format("\n{} pictures in {}, as the model gets the first samples of training\n",
                          written, visible(arguments.write)));
}

}  // namespace

void add_data(CLI::App& program) {
  const auto [command, arguments] =
      add_command<DataArguments>(program, "data", "describe the data of a configuration", run_data);
  arguments.config.add_to(command);
  CLI::Option& write = *command.add_option(
      "--write", arguments.write, "folder for pictures of the first training samples, augmented");
  add_number(command, "--count", arguments.count, "number of pictures",
             CLI::Range(int64_t{1}, int64_t{1'000'000}))
      .needs(&write);
  command.add_flag("--json", arguments.json, "print one JSON object");
  command.footer(R"(Example:
  wisp data apps/configs/cifar10_resnet20.toml --write pictures
Reads all splits in order and leaves nothing out. Training samples are augmented as in the first epoch.)");
}

}  // namespace wisp
