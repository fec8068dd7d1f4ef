# Run at build time: writes version.cpp with the commit of the source tree, only if it changed.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE WISP_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(WISP_COMMIT "no commit known")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND WISP_COMMIT "+")
  endif()
endif()
set(PROJECT_VERSION ${VERSION})
configure_file(${SOURCE}/apps/version.cpp.in ${OUTPUT} @ONLY)
