# Compiler options of kernels. Installed, so that a user's own kernels are compiled the same way.

# Vectorised, with exact arithmetic. g++ 12 vectorises nothing at -O2.
set(wisp_exact_flags -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(NOT DEFINED WISP_KERNEL_OPTIMISATION)
  set(WISP_KERNEL_OPTIMISATION -O3)  # -O0 where a CUDA build is only to be compiled: a third of its time is the host's code
endif()
set(wisp_kernel_flags ${WISP_KERNEL_OPTIMISATION} ${wisp_exact_flags})

# wisp_kernels(TARGET FILE...): adds sources that hold kernels. Optimised in every build type but Debug, and compiled as
# CUDA when WISP_CUDA is on. Sanitizers' checks prevent vectorised loops, so these builds optimise little.
function(wisp_kernels target)
  set(sources ${ARGN})
  set(joined_flags)
  if(COMMAND wisp_joined)  # in Wisp's own build
    wisp_joined(${target} sources)
    if(NOT sources STREQUAL ARGN AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set(joined_flags -Wno-subobject-linkage)  # g++ takes the sources in a joined one for headers
    endif()
  endif()
  target_sources(${target} PRIVATE ${ARGN} ${sources})
  set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # of other options
  if(WISP_CUDA)
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CUDA)
    list(JOIN wisp_kernel_flags "," host_flags)
    list(TRANSFORM joined_flags PREPEND -Xcompiler=)
    set(options -fmad=false -Werror=cross-execution-space-call "-Xcompiler=${host_flags},-fopenmp")
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(options -ffp-contract=off)
  elseif(WISP_SANITIZE)
    set(options ${wisp_exact_flags} ${wisp_sanitizer_flags} -Og)  # -O1 compiles for twice as long, and tests end 6 % sooner
  else()
    set(options ${wisp_kernel_flags})
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${options};${joined_flags}")
endfunction()
