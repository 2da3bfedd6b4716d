# Highway's headers as the target ashlar_highway. Its library is not needed: the functions that
# dynamic dispatch calls are in src/cpu/highway_runtime.cpp.
find_path(ASHLAR_HIGHWAY_INCLUDE hwy/targets.h)
if(NOT ASHLAR_HIGHWAY_INCLUDE)
  message(FATAL_ERROR "Highway's headers, 1.0.3 or newer, were not found (Debian, Ubuntu: libhwy-dev)")
endif()
add_library(ashlar_highway INTERFACE)
target_include_directories(ashlar_highway SYSTEM INTERFACE "${ASHLAR_HIGHWAY_INCLUDE}")
# Declares these functions with default visibility, as their definitions have.
target_compile_definitions(ashlar_highway INTERFACE HWY_SHARED_DEFINE)
