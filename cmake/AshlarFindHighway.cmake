# Provides the target hwy::hwy, from Highway's own CMake package or else from pkg-config.
# Used by the build and, installed next to ashlarConfig.cmake, by programs that link Ashlar.

if(NOT TARGET hwy::hwy)
  find_package(hwy CONFIG QUIET)
endif()
if(NOT TARGET hwy::hwy)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(ashlar_hwy QUIET IMPORTED_TARGET GLOBAL libhwy>=1.0.3)
  endif()
  if(NOT TARGET PkgConfig::ashlar_hwy)
    message(FATAL_ERROR "Highway 1.0.3 or newer was not found (Debian, Ubuntu: libhwy-dev)")
  endif()
  add_library(hwy::hwy INTERFACE IMPORTED)
  set_target_properties(hwy::hwy PROPERTIES INTERFACE_LINK_LIBRARIES PkgConfig::ashlar_hwy)
endif()
