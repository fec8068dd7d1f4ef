// The program `wisp`, with one subcommand per job. Called from the main thread.
#pragma once

namespace wisp {

/// Runs the command line and returns the exit status; errors go to stderr. Subcommands find each
/// model, data set and method that is linked in by its name.
int run_program(int argc, char** argv);

}  // namespace wisp
