// The program `wisp`: one subcommand per job.
#pragma once

namespace wisp {

/// Does what the command line says and returns the exit status; errors go to stderr. Models, data
/// sets and methods that are linked in are known to all subcommands by their names.
int run_program(int argc, char** argv);

}  // namespace wisp
