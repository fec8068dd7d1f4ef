# Script of cmake --install with `folders` and `include`. It gives includes among installed headers their full paths.
file(GLOB_RECURSE headers "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${include}/wisp/*.h")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REGEX REPLACE "(#include \")((${folders})/)" "\\1wisp/\\2" text "${text}")
  file(WRITE "${header}" "${text}")
endforeach()
