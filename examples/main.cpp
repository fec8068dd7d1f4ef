// The program wisp, with models, data sets and methods of one's own: whatever registers itself in
// the files that are linked with this one is known to every subcommand by its name.
#include "apps/wisp.h"

int main(int argc, char** argv) { return wisp::run_program(argc, argv); }
