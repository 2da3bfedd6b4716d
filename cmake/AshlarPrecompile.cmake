# Precompiled headers and unity builds: parsing common headers is about half of the build time.
# Every file still includes what it uses; ASHLAR_PRECOMPILE=OFF verifies it.

option(ASHLAR_PRECOMPILE "Use precompiled headers and unity builds" ON)
if(ASHLAR_SANITIZE STREQUAL "thread" OR CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(ASHLAR_PRECOMPILE OFF)
endif()

set(ashlar_common_headers
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
  <unordered_map> <utility> <variant> <vector>)

# precompile_headers(TARGET HEADERS...): precompiles the common headers and these.
function(precompile_headers target)
  if(ASHLAR_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ashlar_common_headers} ${ARGN})
  endif()
endfunction()

# precompile_headers_as(TARGET OTHER): reuses the precompiled header of a target with the same flags.
function(precompile_headers_as target other)
  if(ASHLAR_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# read_together(TARGET COUNT FOLDERS...): unity build of each folder, COUNT files per translation unit:
# headers are parsed and templates instantiated once per unit, which halves the compile time. Names in
# anonymous namespaces must be unique per folder; ASHLAR_PRECOMPILE=OFF compiles every file alone.
function(read_together target count)
  if(NOT ASHLAR_PRECOMPILE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(all ${target} SOURCES)
  foreach(folder IN LISTS ARGN)
    string(REPLACE "/" "_" name "${folder}")
    set(number 0)
    foreach(source IN LISTS all)
      get_source_file_property(other_flags "${source}" SKIP_PRECOMPILE_HEADERS)
      get_source_file_property(alone "${source}" SKIP_UNITY_BUILD_INCLUSION)
      if(other_flags OR alone OR NOT source MATCHES "^${PROJECT_SOURCE_DIR}/${folder}/[^/]+\\.cpp$")
        continue()
      endif()
      math(EXPR group "${number} / ${count}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}_${group}")
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes a file that a unity source includes for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# For targets that mostly wait for the library: half of the compile time, no slower to run. With
# precompiled headers, GCC 12 reports a false overflow inside std::string's operator+.
set(ashlar_quick_to_compile -O1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND ashlar_quick_to_compile -Wno-array-bounds -Wno-stringop-overflow)
endif()
