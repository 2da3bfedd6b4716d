# Dependencies, named as Debian and Ubuntu package them.

# GLOBAL: programs of a project that adds this one link them with the archive.
find_package(Threads REQUIRED GLOBAL)
include(AshlarFindHighway)
find_package(fmt 9 CONFIG REQUIRED)
# Header-only: src/base/fmt_once.cpp compiles fmt's functions once into the library.
add_library(ashlar_fmt INTERFACE)
target_include_directories(ashlar_fmt SYSTEM INTERFACE
  "$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>")
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
if(ASHLAR_BUILD_CLI)
  find_package(CLI11 2.1 CONFIG REQUIRED)
endif()
if(ASHLAR_BUILD_BENCH)
  # Not by its CMake package: Debian's requires the OpenCL headers, which the CPU engine does not use.
  find_path(ASHLAR_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp REQUIRED)
  find_library(ASHLAR_DNNL_LIBRARY dnnl REQUIRED)
  add_library(ashlar_dnnl INTERFACE)
  target_include_directories(ashlar_dnnl SYSTEM INTERFACE "${ASHLAR_DNNL_INCLUDE}")
  target_link_libraries(ashlar_dnnl INTERFACE "${ASHLAR_DNNL_LIBRARY}")
endif()
if(ASHLAR_BUILD_TESTS)
  find_package(GTest 1.12 CONFIG REQUIRED)
endif()

# libgomp is not instrumented: the thread sanitizer would report its barriers as races.
set(ASHLAR_HAVE_OPENMP OFF)
if(ASHLAR_SANITIZE STREQUAL "thread")
  target_compile_definitions(ashlar_build_flags INTERFACE ASHLAR_NO_OPENMP)
else()
  find_package(OpenMP COMPONENTS CXX GLOBAL)
  if(OpenMP_CXX_FOUND)
    set(ASHLAR_HAVE_OPENMP ON)
  else()
    message(STATUS "No OpenMP: Ashlar will run on one thread")
    target_compile_definitions(ashlar_build_flags INTERFACE ASHLAR_NO_OPENMP)
  endif()
endif()
if(NOT ASHLAR_HAVE_OPENMP)
  target_compile_options(ashlar_build_flags INTERFACE -Wno-unknown-pragmas)
endif()

# Highway compiles a kernel once per target. SSE4, AVX2, AVX-512 and NEON stay, besides the
# compiler's baseline, which Highway requires. The others cost compile time without a measurable
# gain. Not every Highway release defines every name, so only defined ones are disabled.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES "${ASHLAR_HIGHWAY_INCLUDE}")
set(ashlar_disabled_targets "")
foreach(target IN ITEMS HWY_SSSE3 HWY_AVX3_ZEN4 HWY_AVX3_SPR HWY_AVX10_2
                        HWY_SVE HWY_SVE2 HWY_SVE_256 HWY_SVE2_128 HWY_NEON_BF16)
  check_cxx_source_compiles(
    "#include <hwy/detect_targets.h>
     int main() { return (${target}) == 0 ? 1 : 0; }" ASHLAR_KNOWS_${target})
  if(ASHLAR_KNOWS_${target})
    list(APPEND ashlar_disabled_targets ${target})
  endif()
endforeach()
unset(CMAKE_REQUIRED_INCLUDES)
list(JOIN ashlar_disabled_targets "|" ashlar_disabled_targets)

add_library(ashlar_highway_targets INTERFACE)
target_compile_definitions(ashlar_highway_targets INTERFACE
  "HWY_DISABLED_TARGETS=(${ashlar_disabled_targets})")
if(ASHLAR_AVX3_DL)
  target_compile_definitions(ashlar_highway_targets INTERFACE HWY_WANT_AVX3_DL)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Vector types cross no public API; GCC warns about their calling convention in every kernel.
  target_compile_options(ashlar_highway_targets INTERFACE -Wno-psabi)
endif()
