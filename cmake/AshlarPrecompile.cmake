# Headers that nearly every file reads, read once: about half of the time of a build goes into them.
# Every file still includes what it uses; ASHLAR_PRECOMPILE=OFF shows that this is so.

option(ASHLAR_PRECOMPILE "Read common headers once for all files of a target" ON)
if(ASHLAR_SANITIZE STREQUAL "thread" OR CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(ASHLAR_PRECOMPILE OFF)
endif()

set(ashlar_common_headers
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view>
  <unordered_map> <utility> <variant> <vector>)

# precompile_headers(TARGET HEADERS...): the common ones and these.
function(precompile_headers target)
  if(ASHLAR_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ashlar_common_headers} ${ARGN})
  endif()
endfunction()

# precompile_headers_as(TARGET OTHER): those of another target with the same flags, without making
# them again.
function(precompile_headers_as target other)
  if(ASHLAR_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()

# read_together(TARGET COUNT FOLDERS...): files of one folder, COUNT at a time, are one to the compiler,
# which reads headers and makes what templates ask for once for all of them: half of the time. Names in
# the anonymous namespaces of such a folder differ; ASHLAR_PRECOMPILE=OFF reads every file alone.
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
    # It takes a file that is read by another one for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# What waits for the library most of the time: half of the time to compile, no slower to run. GCC 12
# reports the overflow inside std::string's own operator+ where the header was precompiled.
set(ashlar_quick_to_compile -O1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND ashlar_quick_to_compile -Wno-array-bounds -Wno-stringop-overflow)
endif()
