#include "apps/inference/transcribe.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/asked_beam.h"
#include "apps/commands/asked_run.h"
#include "apps/commands/commands.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct TranscribeArguments {
  AskedRun run;
  AskedBeam beam;
};

void print_text(const Transcript& transcript) {
  if (!transcript.error.empty()) return write_notice(transcript.error);
  write_out(fmt::format("{}: {}\n", visible(transcript.file), visible(transcript.text)));
}

void print_json(const Transcript& transcript) {
  nlohmann::ordered_json line;
  line["file"] = transcript.file;
  if (!transcript.error.empty()) {
    line["error"] = transcript.error;
  } else {
    line["text"] = transcript.text;
    line["words"] = nlohmann::ordered_json::array();
    for (const TimedWord& word : transcript.words)
      line["words"].push_back({{"word", word.word},
                               {"begin_s", word.begin_s},
                               {"end_s", word.end_s},
                               {"confidence", word.confidence}});
  }
  write_out(
      fmt::format("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

void run_transcribe(TranscribeArguments& arguments) {
  const std::unique_ptr<Inference> model = arguments.run.open();
  std::optional<NgramModel> words;
  const std::optional<BeamOptions> beam = arguments.beam.open(words, model->facts().names);
  bool failed = false;
  transcribe(*model, arguments.run.files, beam, [&](const Transcript& transcript) {
    arguments.run.json ? print_json(transcript) : print_text(transcript);
    failed = failed || !transcript.error.empty();
  });
  if (failed) throw ExitStatus{1};
}

}  // namespace

void add_transcribe(CLI::App& program) {
  const auto [command, arguments] = add_command<TranscribeArguments>(
      program, "transcribe", "transcribe sound files with a run's model", run_transcribe);
  command.footer(R"(Examples:
  wisp transcribe runs/own a.wav
  wisp transcribe runs/own a.wav --beam 64 --lm text.arpa
Needs no data set. Without --beam and --lm it takes the likeliest label of each frame. --json prints one object per line,
with each word's begin and end in seconds and the model's confidence in it. A file that cannot be read is reported and
skipped, and the exit status is 1.)");
  arguments.run.add_to(command, "sound files: FLAC, WAV, SPHERE");
  arguments.beam.add_to(command);
}

}  // namespace wisp
