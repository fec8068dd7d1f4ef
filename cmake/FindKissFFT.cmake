# Finds kissfft in f32: target KissFFT::kissfft. Installed, because users of the static libraries link it too. Debian's own
# kissfft-config.cmake finds its shared library only if BUILD_SHARED_LIBS is set.
find_path(KissFFT_INCLUDE_DIR kiss_fftr.h PATH_SUFFIXES kissfft)
find_library(KissFFT_LIBRARY kissfft-float)
mark_as_advanced(KissFFT_INCLUDE_DIR KissFFT_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(KissFFT REQUIRED_VARS KissFFT_LIBRARY KissFFT_INCLUDE_DIR)
if(KissFFT_FOUND AND NOT TARGET KissFFT::kissfft)
  add_library(KissFFT::kissfft UNKNOWN IMPORTED)
  set_target_properties(KissFFT::kissfft PROPERTIES IMPORTED_LOCATION ${KissFFT_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${KissFFT_INCLUDE_DIR})
endif()
