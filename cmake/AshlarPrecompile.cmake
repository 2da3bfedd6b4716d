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

# What waits for the library most of the time: half of the time to compile, no slower to run. GCC 12
# reports the overflow inside std::string's own operator+ where the header was precompiled.
set(ashlar_quick_to_compile -O1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND ashlar_quick_to_compile -Wno-array-bounds -Wno-stringop-overflow)
endif()
