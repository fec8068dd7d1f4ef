// The program wisp with your own models, data sets and methods. Every subcommand knows all that
// register themselves in files linked with this one.
#include "apps/wisp.h"

int main(int argc, char** argv) { return wisp::run_program(argc, argv); }
