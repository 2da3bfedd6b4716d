# Options, build type, compiler launcher, warnings and sanitizers.
# The target ashlar_build_flags carries our compile flags.

# A project that adds this one by add_subdirectory() gets the library alone, compiled with its own flags.
option(ASHLAR_BUILD_TESTS "Build the tests and the fuzz targets" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_CLI "Build the ashlar command" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_EXAMPLES "Build the example programs" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_CUDNN "Build libcudnn.so.9" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_BUILD_BENCH "Build `ashlar bench` with oneDNN as its peer" OFF)
option(ASHLAR_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_INSTALL "Define install rules" ${PROJECT_IS_TOP_LEVEL})
option(ASHLAR_INSTALL_STRIPPED "Install without debug information" ON)
if(DEFINED BUILD_SHARED_LIBS)
  set(ashlar_default "${BUILD_SHARED_LIBS}")
else()
  set(ashlar_default "${PROJECT_IS_TOP_LEVEL}")
endif()
option(ASHLAR_BUILD_SHARED "Build and install libashlar.so (default: BUILD_SHARED_LIBS)" ${ashlar_default})
if(ASHLAR_BUILD_SHARED)
  set(ashlar_default OFF)
else()
  set(ashlar_default ON)
endif()
option(ASHLAR_INSTALL_STATIC "Install libashlar.a (default: if libashlar.so is not built)" ${ashlar_default})
option(ASHLAR_LIBFUZZER "Build the fuzz targets for libFuzzer (clang only)" OFF)
option(ASHLAR_AVX3_DL "Compile SIMD kernels for AVX-512 with VNNI as one more target" OFF)
set(ASHLAR_SANITIZE "" CACHE STRING "Sanitizer: address, undefined, thread, or empty")
set_property(CACHE ASHLAR_SANITIZE PROPERTY STRINGS "" address undefined thread)
set(ASHLAR_TEST_TIMEOUT 600 CACHE STRING "Seconds one test may take")

if(ASHLAR_BUILD_TESTS AND NOT ASHLAR_BUILD_CUDNN)
  message(FATAL_ERROR "ASHLAR_BUILD_TESTS needs ASHLAR_BUILD_CUDNN: there are tests of libcudnn")
endif()
if(NOT ASHLAR_SANITIZE MATCHES "^(|address|undefined|thread)$")
  message(FATAL_ERROR "ASHLAR_SANITIZE is '${ASHLAR_SANITIZE}', expected address, undefined, thread "
                      "or nothing")
endif()
if(ASHLAR_LIBFUZZER AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "ASHLAR_LIBFUZZER needs clang, but the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()

get_property(ashlar_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT ashlar_multi_config AND NOT CMAKE_BUILD_TYPE)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
  else()
    message(WARNING "CMAKE_BUILD_TYPE is not set: Ashlar is compiled without optimisation")
  endif()
endif()
# -g1 is enough for stack traces and profiles; full debug information makes the SIMD kernels three times as large and
# a third slower to compile. A sanitizer build keeps assertions.
if(ASHLAR_SANITIZE OR ASHLAR_LIBFUZZER)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
elseif(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

# ccache: all build folders of one checkout share cached objects. The working directory is not part
# of the key, which is safe because all source paths are absolute. Precompiled headers
# (AshlarPrecompile.cmake) need the sloppiness, and a key from header files instead of preprocessed
# text: after a change of comments alone, GCC would reject the cached precompiled header as stale.
find_program(ASHLAR_CCACHE ccache)
if(ASHLAR_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_NOHASHDIR=1
      CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros "${ASHLAR_CCACHE}")
endif()

add_library(ashlar_build_flags INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(ashlar_build_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
endif()
# __FILE__ and source_location are relative to the root of the checkout.
target_compile_options(ashlar_build_flags INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(ASHLAR_WERROR)
  target_compile_options(ashlar_build_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 report -Wrestrict inside std::string's own operator+ (GCC bug 105651).
  target_compile_options(ashlar_build_flags INTERFACE -Wno-restrict)
  if(ASHLAR_SANITIZE)
    # Instrumentation hides initialisation from these flow-based warnings.
    target_compile_options(ashlar_build_flags INTERFACE
      -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

if(ASHLAR_SANITIZE)
  set(ashlar_sanitize_flags -fsanitize=${ASHLAR_SANITIZE} -fno-omit-frame-pointer)
  if(ASHLAR_SANITIZE STREQUAL "undefined")
    list(APPEND ashlar_sanitize_flags -fno-sanitize-recover=all)
  endif()
  if(ASHLAR_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Fake stack frames for use-after-return detection are only 32-byte aligned: 64-byte vectors in
    # them fault (GCC bug 110027).
    list(APPEND ashlar_sanitize_flags --param=asan-use-after-return=0)
  endif()
  target_compile_options(ashlar_build_flags INTERFACE ${ashlar_sanitize_flags})
  target_link_options(ashlar_build_flags INTERFACE ${ashlar_sanitize_flags})
  target_compile_definitions(ashlar_build_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(ASHLAR_LIBFUZZER)
  target_compile_options(ashlar_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
