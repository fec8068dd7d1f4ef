#include "apps/wisp.h"

int main(int argc, char** argv) { return wisp::run_program(argc, argv); }
