# Installs everything beside the libraries (wisp_archive installs them) and the program: headers, the CMake package, the
# pkg-config file, configs and examples. No installed file knows its own path, so the prefix may move.
include(CMakePackageConfigHelpers)

set(wisp_package ${CMAKE_INSTALL_LIBDIR}/cmake/wisp)

# All headers except those that need a library that only Wisp's own sources see.
set(wisp_header_folders core layers models data compression distributed apps)
install(DIRECTORY ${wisp_header_folders} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wisp
  FILES_MATCHING PATTERN "*.h"
  PATTERN core/cpu EXCLUDE
  PATTERN core/emulated/include EXCLUDE
  PATTERN core/emulated/cudnn.h EXCLUDE
  PATTERN core/io/config_tree.h EXCLUDE
  PATTERN core/io/json.h EXCLUDE
  PATTERN core/io/toml_node.h EXCLUDE
  PATTERN distributed/communicator/mpi_messages.h EXCLUDE
  PATTERN distributed/communicator/mpi_peers.h EXCLUDE
  PATTERN distributed/communicator/mpi_session.h EXCLUDE
  PATTERN apps/commands EXCLUDE
  PATTERN apps/configs EXCLUDE)
include(wisp_test_kit)
set(wisp_test_kit ${CMAKE_INSTALL_DATADIR}/wisp/test_kit)
list(TRANSFORM wisp_test_kit_headers PREPEND tests/support/)
install(FILES ${wisp_test_kit_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wisp/tests/support)
install(FILES tests/support/gradcheck.cpp tests/support/test_replica.cpp DESTINATION ${wisp_test_kit})
# "core/ops.h" becomes "wisp/core/ops.h", so that a user's own folders of these names are never in the way.
list(JOIN wisp_header_folders "|" wisp_header_folders)
string(APPEND wisp_header_folders "|tests")
install(CODE "set(folders \"${wisp_header_folders}\")\nset(include \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/qualify_includes.cmake)

install(EXPORT wisp DESTINATION ${wisp_package} NAMESPACE wisp:: FILE wisp-targets.cmake)
configure_package_config_file(cmake/wisp-config.cmake.in ${PROJECT_BINARY_DIR}/wisp-config.cmake
  INSTALL_DESTINATION ${wisp_package} PATH_VARS wisp_test_kit NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/wisp-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wisp-config.cmake ${PROJECT_BINARY_DIR}/wisp-config-version.cmake
  cmake/FindOneDNN.cmake cmake/FindKissFFT.cmake cmake/FindOpenCV.cmake
  cmake/FindSndFile.cmake cmake/FindCudaLibraries.cmake cmake/wisp_kernels.cmake cmake/wisp_test_kit.cmake
  DESTINATION ${wisp_package})

file(RELATIVE_PATH wisp_prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
list(JOIN wisp_exact_flags " " wisp_pc_flags)
set(wisp_pc_libraries ${OpenMP_CXX_FLAGS} -pthread)
if(OneDNN_FOUND)
  list(APPEND wisp_pc_libraries -ldnnl)
endif()
if(KissFFT_FOUND)
  list(APPEND wisp_pc_libraries -lkissfft-float)
endif()
if(OpenCV_FOUND)
  list(APPEND wisp_pc_libraries -lopencv_imgcodecs -lopencv_core)
endif()
if(WISP_JPEG_HAS_REGIONS)
  list(APPEND wisp_pc_libraries -ljpeg)
endif()
if(SndFile_FOUND)
  list(APPEND wisp_pc_libraries -lsndfile)
endif()
if(CudaLibraries_FOUND)
  list(APPEND wisp_pc_libraries -lcublasLt -lcudnn -lcufft)
endif()
if(TARGET CudaLibraries::nccl)
  list(APPEND wisp_pc_libraries -lnccl)
endif()
if(WISP_CUDA)
  list(APPEND wisp_pc_libraries -lcudart_static -lrt -ldl)
else()
  set(wisp_pc_emulated ,-lwisp_emulated,-lwisp_emulated_nccl)
endif()
if(MPI_CXX_FOUND)
  list(APPEND wisp_pc_libraries ${MPI_CXX_LIBRARIES})
endif()
list(JOIN wisp_pc_libraries " " wisp_pc_libraries)
configure_file(cmake/wisp.pc.in ${PROJECT_BINARY_DIR}/wisp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/wisp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY apps/configs apps/tables examples DESTINATION ${CMAKE_INSTALL_DATADIR}/wisp)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
