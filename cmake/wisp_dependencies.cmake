# The libraries that Wisp is built with. Required: fmt, toml++, nlohmann-json, CLI11, OpenMP, GoogleTest for tests.
# Optional: oneDNN, kissfft, OpenCV, libsndfile, MPI, CUDA, NCCL.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# Debian's toml++ has only a pkg-config file; the headers are enough.
find_path(WISP_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
add_library(wisp_tomlpp INTERFACE)
target_include_directories(wisp_tomlpp SYSTEM INTERFACE ${WISP_TOMLPP_INCLUDE})
target_compile_definitions(wisp_tomlpp INTERFACE TOML_HEADER_ONLY=1)

if(WISP_ONEDNN)
  find_package(OneDNN)
endif()
if(NOT OneDNN_FOUND)
  message(STATUS "oneDNN: not found, the reference backend computes")
endif()

if(WISP_KISSFFT AND OneDNN_FOUND)
  find_package(KissFFT)
endif()
if(NOT KissFFT_FOUND)
  message(STATUS "kissfft: not used, the reference transform computes")
endif()

if(WISP_OPENCV)
  find_package(OpenCV)
endif()
if(NOT OpenCV_FOUND)
  message(STATUS "OpenCV: not found, photos cannot be read")
endif()

if(WISP_SNDFILE)
  find_package(SndFile)
endif()
if(NOT SndFile_FOUND)
  message(STATUS "libsndfile: not found, sound files cannot be read")
endif()

# Wisp uses only the C interface of MPI.
if(WISP_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  message(STATUS "MPI: ${MPIEXEC_EXECUTABLE}, workers may be processes")
else()
  message(STATUS "MPI: not found, workers are threads")
endif()

if(WISP_TESTS)
  find_package(GTest REQUIRED)
endif()

if(WISP_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # newer devices compile the code for 90 when the program starts
  endif()
  enable_language(CUDA)
  # CMake 3.25.1 does not know nvcc 13's C++20 flag.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)

  find_package(CUDAToolkit REQUIRED)
  find_package(CudaLibraries)
  if(CudaLibraries_FOUND)
    message(STATUS "cuDNN: ${CudaLibraries_cudnn_LIBRARY}")
    message(STATUS "NCCL: ${CudaLibraries_nccl_LIBRARY}")
  else()
    message(STATUS "cuBLASLt, cuDNN, cuFFT: not all found, nothing trains on GPUs (WISP_CUDA_LIBRARIES_DIR says where to look)")
  endif()
endif()
