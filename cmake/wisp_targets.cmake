# Functions that make Wisp's targets.

add_library(wisp_warnings INTERFACE)
target_compile_options(wisp_warnings INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-missing-field-initializers$<$<BOOL:${WISP_WERROR}>:;-Werror>>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-pass-failed>  # target_clones and omp simd are hints
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers$<$<BOOL:${WISP_WERROR}>:,-Werror>>)

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
if(WISP_SANITIZE_TESTS)
  set(wisp_sanitized PUBLIC)  # libraries, and the programs that link them
else()
  set(wisp_sanitized PRIVATE)
endif()

# wisp_folders_together(TARGET): with CMAKE_UNITY_BUILD, the sources of a folder are compiled as one file, which reads their
# headers once. Local names must then differ within a folder, and among all sources of a program made without wisp_test().
function(wisp_folders_together target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT IS_ABSOLUTE ${source})  # a generated one
      cmake_path(GET source PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# wisp_folders_together_later(TARGET): the same, at the end of this CMakeLists.txt, when all sources are known.
function(wisp_folders_together_later target)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL wisp_folders_together ${target})")
endfunction()

# wisp_alone(FILE...): sources that are compiled by themselves in a unity build too, most for their local names. Targets whose
# sources all name their parts alike have UNITY_BUILD OFF instead. For kernels, both are said before wisp_kernels().
function(wisp_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# wisp_joined(TARGET FILES): where TARGET has UNITY_BUILD, replaces the sources of each folder in the list FILES by one that
# includes them. It is for sources with the same options of their own, which CMake 3.25 does not join, as it does not join
# CUDA's. nvcc reads the headers of a source four times, which is most of its work.
function(wisp_joined target files)
  get_target_property(unity ${target} UNITY_BUILD)
  if(NOT unity)
    return()
  endif()
  set(groups)
  set(compiled)
  foreach(file IN LISTS ${files})
    get_source_file_property(alone ${file} SKIP_UNITY_BUILD_INCLUSION)
    if(alone OR IS_ABSOLUTE ${file})  # or a generated one
      list(APPEND compiled ${file})
    else()
      cmake_path(GET file PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${target}_in_${folder}" group)
      list(APPEND groups ${group})
      list(APPEND ${group} ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  get_property(made DIRECTORY PROPERTY wisp_joined_groups)
  foreach(group IN LISTS groups)
    list(LENGTH ${group} count)
    if(count EQUAL 1)
      list(APPEND compiled ${${group}})
    elseif(group IN_LIST made)
      message(FATAL_ERROR "${target}: the sources of a folder are given twice: ${${group}}")
    else()
      list(TRANSFORM ${group} REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"\n" OUTPUT_VARIABLE includes)
      string(CONCAT includes ${includes})
      set(joined ${CMAKE_CURRENT_BINARY_DIR}/joined/${group}.cpp)
      file(CONFIGURE OUTPUT ${joined} CONTENT "${includes}" @ONLY)
      set_source_files_properties(${${group}} PROPERTIES HEADER_FILE_ONLY ON)
      list(APPEND compiled ${joined})
      set_property(DIRECTORY APPEND PROPERTY wisp_joined_groups ${group})
    endif()
  endforeach()
  set(${files} ${compiled} PARENT_SCOPE)
endfunction()

# wisp_archive(TARGET NAME DEPENDENCIES...): a static library, linked and installed as wisp::NAME.
function(wisp_archive target name)
  add_library(${target} STATIC)
  add_library(wisp::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/wisp>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:wisp_warnings>)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX)
  wisp_folders_together_later(${target})
  if(WISP_SANITIZE)
    target_compile_options(${target} ${wisp_sanitized} ${wisp_sanitizer_flags})
    target_link_options(${target} PUBLIC ${wisp_sanitizer_flags})
    target_compile_definitions(${target} ${wisp_sanitized} WISP_NO_CLONES)
  endif()
  install(TARGETS ${target} EXPORT wisp)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# wisp_library(NAME DEPENDENCIES...): target wisp_NAME, linked as wisp::NAME; sources are added by the caller.
function(wisp_library name)
  wisp_archive(wisp_${name} ${name} ${ARGN})
endfunction()

# wisp_whole_library(NAME DEPENDENCIES...): wisp_library for components that register themselves or replace weak functions.
# Nothing needs them, so a target that links wisp::NAME gets the whole archive. Otherwise the linker would drop them.
function(wisp_whole_library name)
  wisp_archive(wisp_${name} ${name}_archive ${ARGN})
  add_library(wisp_${name}_whole INTERFACE)
  add_library(wisp::${name} ALIAS wisp_${name}_whole)
  target_link_libraries(wisp_${name}_whole INTERFACE $<LINK_LIBRARY:WHOLE_ARCHIVE,wisp::${name}_archive>)
  install(TARGETS wisp_${name}_whole EXPORT wisp)
  set_target_properties(wisp_${name}_whole PROPERTIES EXPORT_NAME ${name})
endfunction()

# wisp_little_optimised(TARGET LEVEL): a lower optimisation, -O0 or -O1, for a target that takes longer to compile than to
# run. Kernels with options of their own keep theirs. Tests beside sanitized libraries get what a release build gives them, as
# its objects are in the compiler cache.
set(wisp_is_release $<OR:$<CONFIG:Release>,$<STREQUAL:${wisp_sanitized},PRIVATE>>)
function(wisp_little_optimised target level)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,${wisp_is_release}>:${level}>)
endfunction()

# wisp_optimised(TARGET LEVEL FILE...): adds sources that run longer than they compile to such a target.
function(wisp_optimised target level)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<${wisp_is_release}:${level}>
    SKIP_PRECOMPILE_HEADERS ON)  # of another level
endfunction()

# wisp_cuda_sources(TARGET FILE...): adds sources that call CUDA. Only they see the headers of the toolkit and its
# libraries, or the emulated ones, so a compiler cache shares all other sources between builds with and without CUDA.
function(wisp_cuda_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  set(folders ${PROJECT_SOURCE_DIR}/core/emulated/include)
  if(WISP_CUDA)
    set(folders ${CUDAToolkit_INCLUDE_DIRS})
    foreach(library IN ITEMS cublasLt cudnn cufft nccl)
      if(TARGET CudaLibraries::${library})
        list(APPEND folders ${CudaLibraries_${library}_INCLUDE_DIR})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES folders)
    list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  endif()
  list(TRANSFORM folders PREPEND -isystem)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${folders}")
endfunction()

# Settings of every test. Spinning OpenMP threads make tests ten times slower on a busy machine. libgomp is not
# instrumented, so ThreadSanitizer sees one OpenMP thread. A timeout ends tests that hang.
set(wisp_test_environment OMP_WAIT_POLICY=passive)
set(wisp_test_seconds 600)
if(WISP_SANITIZE STREQUAL "thread")
  list(APPEND wisp_test_environment OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1)
endif()
if(WISP_SANITIZE STREQUAL "address")  # the program reports memory that is not there, as without the sanitizer
  list(APPEND wisp_test_environment ASAN_OPTIONS=allocator_may_return_null=1)
endif()
if(WISP_SANITIZE)
  set(wisp_test_seconds 3000)
endif()
function(wisp_test_settings name)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${wisp_test_seconds} ENVIRONMENT "${wisp_test_environment}")
endfunction()

# wisp_test_under_limit(NAME PROGRAM FILTER): an entry of ctest that runs tests of a program where OpenMP grants two threads.
function(wisp_test_under_limit name program filter)
  if(NOT WISP_SANITIZE STREQUAL "thread")
    add_test(NAME ${name} COMMAND ${program} --gtest_filter=${filter})
    wisp_test_settings(${name})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT OMP_THREAD_LIMIT=2)
  endif()
endfunction()

# wisp_test(NAME SOURCE...): one test program, one entry of ctest.
function(wisp_test name)
  add_executable(${name} ${ARGN})
  wisp_folders_together_later(${name})
  wisp_little_optimised(${name} -O0)
  if(WISP_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM wisp_test_support)
    # g++ 12 forgets that std::string is the system's, and warns of what it inlines from there
    target_compile_options(${name} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>)
  endif()
  target_link_libraries(${name} PRIVATE wisp::test_support GTest::gtest_main $<BUILD_INTERFACE:wisp_warnings>)
  add_test(NAME ${name} COMMAND ${name})
  wisp_test_settings(${name})
endfunction()

# wisp_test_in_parts(NAME COUNT): entries of ctest NAME_2 to NAME_COUNT beside NAME, so that processes share the tests of a
# long program.
function(wisp_test_in_parts name count)
  foreach(part RANGE 1 ${count})
    set(entry ${name})
    if(part GREATER 1)
      set(entry ${name}_${part})
      add_test(NAME ${entry} COMMAND ${name})
      wisp_test_settings(${entry})
    endif()
    math(EXPR index "${part} - 1")
    set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT GTEST_TOTAL_SHARDS=${count} GTEST_SHARD_INDEX=${index})
  endforeach()
endfunction()

# The mpirun of tests: more processes than cores, and root in containers. Open MPI itself leaks.
set(wisp_mpirun ${MPIEXEC_EXECUTABLE} --oversubscribe --allow-run-as-root)
if(WISP_SANITIZE STREQUAL "address")
  list(APPEND wisp_mpirun -x ASAN_OPTIONS=detect_leaks=0)
endif()
string(JOIN " " wisp_mpirun_line ${wisp_mpirun})
