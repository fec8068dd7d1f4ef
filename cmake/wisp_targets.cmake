# How Wisp's targets are made.

add_library(wisp_warnings INTERFACE)
target_compile_options(wisp_warnings INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-missing-field-initializers;-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-Werror>)

if(WISP_SANITIZE STREQUAL "address")
  set(wisp_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(WISP_SANITIZE STREQUAL "thread")
  set(wisp_sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(WISP_SANITIZE STREQUAL "fuzzer")
  set(wisp_sanitizer_flags -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
elseif(WISP_SANITIZE)
  message(FATAL_ERROR "WISP_SANITIZE is '${WISP_SANITIZE}', expected address, thread, fuzzer or nothing")
endif()

# wisp_library(NAME DEPENDENCIES...): target wisp_NAME, alias wisp::NAME; sources are added by the caller.
function(wisp_library name)
  add_library(wisp_${name} STATIC)
  add_library(wisp::${name} ALIAS wisp_${name})
  target_include_directories(wisp_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/wisp>)
  target_compile_features(wisp_${name} PUBLIC cxx_std_20)
  target_link_libraries(wisp_${name} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:wisp_warnings>)
  set_target_properties(wisp_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  if(WISP_SANITIZE)
    target_compile_options(wisp_${name} PUBLIC ${wisp_sanitizer_flags})
    target_link_options(wisp_${name} PUBLIC ${wisp_sanitizer_flags})
    target_compile_definitions(wisp_${name} PUBLIC WISP_NO_CLONES)
  endif()
endfunction()

# wisp_kernels(TARGET FILE...): sources that hold kernels. Optimised in every build type (g++ 12 vectorises nothing at
# -O2), exact arithmetic, and compiled as CUDA when WISP_CUDA is on.
function(wisp_kernels target)
  target_sources(${target} PRIVATE ${ARGN})
  if(WISP_CUDA)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS
      "-fmad=false;-Xcompiler=-O3,-ffp-contract=off,-fno-math-errno,-fno-trapping-math,-fopenmp")
  elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-fno-math-errno;-fno-trapping-math")
  else()
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
  endif()
endfunction()

# What every test runs with. Spinning OpenMP threads make tests ten times slower on a busy machine; libgomp is not
# instrumented, so ThreadSanitizer sees one OpenMP thread; nothing may hang.
set(wisp_test_environment OMP_WAIT_POLICY=passive)
if(WISP_SANITIZE STREQUAL "thread")
  list(APPEND wisp_test_environment OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1)
endif()
function(wisp_test_settings name)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${wisp_test_environment}")
endfunction()

# wisp_test(NAME SOURCE...): one test program, one entry of ctest.
function(wisp_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE wisp::test_support GTest::gtest_main $<BUILD_INTERFACE:wisp_warnings>)
  add_test(NAME ${name} COMMAND ${name})
  wisp_test_settings(${name})
endfunction()

# Starts processes for tests: more than there are cores, and as root in containers.
set(wisp_mpirun ${MPIEXEC_EXECUTABLE} --oversubscribe --allow-run-as-root)
string(JOIN " " wisp_mpirun_line ${wisp_mpirun})

# wisp_components(TARGET): links the trainer with all models, data sets and methods. They register themselves, so their
# archives are linked whole; otherwise the linker drops them.
function(wisp_components target)
  target_link_libraries(${target} PRIVATE wisp::train wisp::distributed wisp::models wisp::data wisp::compression)
  set_property(TARGET ${target} PROPERTY LINK_LIBRARY_OVERRIDE WHOLE_ARCHIVE,wisp_models,wisp_data,wisp_compression)
endfunction()
