# Finds the CUDA libraries that compute: targets CudaLibraries::cublasLt, CudaLibraries::cudnn, CudaLibraries::cufft,
# and CudaLibraries::nccl if it is there. Installed, because users of the static libraries link them too.
# WISP_CUDA_LIBRARIES_DIR lists folders to search before the toolkit. A folder has include and lib, or nvidia/… with
# them, as in Python wheels, which hold no bare libNAME.so.
find_package(CUDAToolkit QUIET)
set(CudaLibraries_places ${WISP_CUDA_LIBRARIES_DIR})
foreach(place IN LISTS WISP_CUDA_LIBRARIES_DIR)
  file(GLOB CudaLibraries_wheels ${place}/nvidia/*)
  list(APPEND CudaLibraries_places ${CudaLibraries_wheels})
endforeach()
list(APPEND CudaLibraries_places ${CUDAToolkit_LIBRARY_ROOT})

# find_cuda_library(NAME HEADER FILE...): FILEs are the library's names where there is no bare one.
macro(find_cuda_library name header)
  find_library(CudaLibraries_${name}_LIBRARY NAMES ${name} ${ARGN} NAMES_PER_DIR
    HINTS ${CudaLibraries_places} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
  find_path(CudaLibraries_${name}_INCLUDE_DIR ${header}
    HINTS ${CudaLibraries_places} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  mark_as_advanced(CudaLibraries_${name}_LIBRARY CudaLibraries_${name}_INCLUDE_DIR)
endmacro()
find_cuda_library(cublasLt cublasLt.h libcublasLt.so.13 libcublasLt.so.12)
find_cuda_library(cudnn cudnn.h libcudnn.so.9)
find_cuda_library(cufft cufft.h libcufft.so.12 libcufft.so.11)
find_cuda_library(nccl nccl.h libnccl.so.2)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaLibraries REQUIRED_VARS
  CudaLibraries_cublasLt_LIBRARY CudaLibraries_cublasLt_INCLUDE_DIR
  CudaLibraries_cudnn_LIBRARY CudaLibraries_cudnn_INCLUDE_DIR
  CudaLibraries_cufft_LIBRARY CudaLibraries_cufft_INCLUDE_DIR)
foreach(name IN ITEMS cublasLt cudnn cufft nccl)
  if(CudaLibraries_FOUND AND CudaLibraries_${name}_LIBRARY AND CudaLibraries_${name}_INCLUDE_DIR AND
      NOT TARGET CudaLibraries::${name})
    add_library(CudaLibraries::${name} UNKNOWN IMPORTED)
    set_target_properties(CudaLibraries::${name} PROPERTIES IMPORTED_LOCATION ${CudaLibraries_${name}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${CudaLibraries_${name}_INCLUDE_DIR})
  endif()
endforeach()
