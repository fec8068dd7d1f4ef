# Finds OpenCV's module for image files: target OpenCV::imgcodecs. Installed, because users of the static libraries link
# it too. Debian has OpenCVConfig.cmake only in the package of all modules, which takes 500 MB more.
find_path(OpenCV_INCLUDE_DIR opencv2/imgcodecs.hpp PATH_SUFFIXES opencv4)
find_library(OpenCV_IMGCODECS_LIBRARY opencv_imgcodecs)
find_library(OpenCV_CORE_LIBRARY opencv_core)
mark_as_advanced(OpenCV_INCLUDE_DIR OpenCV_IMGCODECS_LIBRARY OpenCV_CORE_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenCV REQUIRED_VARS OpenCV_IMGCODECS_LIBRARY OpenCV_CORE_LIBRARY OpenCV_INCLUDE_DIR)
if(OpenCV_FOUND AND NOT TARGET OpenCV::imgcodecs)
  add_library(OpenCV::imgcodecs UNKNOWN IMPORTED)
  set_target_properties(OpenCV::imgcodecs PROPERTIES IMPORTED_LOCATION ${OpenCV_IMGCODECS_LIBRARY}
    INTERFACE_LINK_LIBRARIES ${OpenCV_CORE_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OpenCV_INCLUDE_DIR})
endif()
