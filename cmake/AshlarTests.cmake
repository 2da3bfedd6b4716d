# Tests. Every folder tests/<area>/ with a *_test.cpp becomes one program <area>_tests, ctest label
# <area>. tests/support is a helper library linked into all of them; its own tests are an area too.

include(GoogleTest)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")

set(ashlar_test_timeout ${ASHLAR_TEST_TIMEOUT})
if(ASHLAR_SANITIZE)
  math(EXPR ashlar_test_timeout "3 * ${ASHLAR_TEST_TIMEOUT}")
endif()

# Include paths of every test program: src/ too, because tests mirror it.
add_library(ashlar_test_base INTERFACE)
target_include_directories(ashlar_test_base INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
target_compile_definitions(ashlar_test_base INTERFACE
  ASHLAR_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
# The library is optimised as users get it; the tests themselves need not be.
target_compile_options(ashlar_test_base INTERFACE -O1)
target_link_libraries(ashlar_test_base INTERFACE
  ashlar ashlar_build_flags ashlar_highway_targets ashlar_highway ashlar_fmt
  nlohmann_json::nlohmann_json GTest::gmock GTest::gtest)
# Twenty programs link the whole library: its debug information stays in the archive, theirs is
# stripped.
if(NOT ASHLAR_SANITIZE)
  target_compile_options(ashlar_test_base INTERFACE -g0)
  target_link_options(ashlar_test_base INTERFACE LINKER:--strip-debug)
endif()
find_program(ASHLAR_GOLD ld.gold)
if(ASHLAR_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(ashlar_test_base INTERFACE -fuse-ld=gold)  # a third of the time
endif()
if(ASHLAR_HAVE_OPENMP)
  target_link_libraries(ashlar_test_base INTERFACE OpenMP::OpenMP_CXX)
endif()
# Flags of the precompiled header that all of them share.
target_compile_options(ashlar_test_base INTERFACE -fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports them inside std::string's own operator+ where the header was precompiled.
  target_compile_options(ashlar_test_base INTERFACE -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(TARGET ashlar_cli_parts)
  target_link_libraries(ashlar_test_base INTERFACE ashlar_cli_parts)
endif()

file(GLOB support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
list(FILTER support_sources EXCLUDE REGEX "_test\\.cpp$")
if(support_sources)
  add_library(ashlar_test_support STATIC ${support_sources})
  target_link_libraries(ashlar_test_support PUBLIC ashlar_test_base)
  precompile_headers(ashlar_test_support <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>
                     <ashlar/ashlar.hpp>)
else()
  add_library(ashlar_test_support INTERFACE)
  target_link_libraries(ashlar_test_support INTERFACE ashlar_test_base)
endif()

# Areas with unity builds: the same headers dominate their compile time.
set(ashlar_unity_areas base capi cli cpu cuda golden graph ops plan random reference)
# Areas with about a thousand cases of a millisecond each: one process runs all and names failures.
set(ashlar_brief_areas golden graph)
set(ashlar_unity UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
if(support_sources)
  set_target_properties(ashlar_test_support PROPERTIES ${ashlar_unity})
endif()

function(add_test_area area)
  set(folder "${PROJECT_SOURCE_DIR}/tests/${area}")
  if(area STREQUAL "support")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*_test.cpp")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  endif()
  if(NOT sources MATCHES "_test\\.cpp")
    return()
  endif()
  add_executable(${area}_tests ${sources})
  target_link_libraries(${area}_tests PRIVATE ashlar_test_support GTest::gtest_main)
  if(support_sources)
    precompile_headers_as(${area}_tests ashlar_test_support)
  endif()
  if(area IN_LIST ashlar_unity_areas)
    set_target_properties(${area}_tests PROPERTIES ${ashlar_unity})
  endif()
  if(area STREQUAL "cli" AND TARGET ashlar_cli)
    target_compile_definitions(cli_tests PRIVATE ASHLAR_CLI_PATH="${PROJECT_BINARY_DIR}/ashlar"
      ASHLAR_COMPILER="${CMAKE_CXX_COMPILER}" ASHLAR_EMULATOR_FOLDER="${ashlar_emulator_folder}")
    add_dependencies(cli_tests ashlar_cli emulated_cuda emulated_nvrtc)
  endif()
  if(area STREQUAL "cudnn")
    # Tests call both the exported functions of libcudnn.so.9 and their implementation.
    target_sources(cudnn_tests PRIVATE $<TARGET_OBJECTS:ashlar_cudnn>)
    target_include_directories(cudnn_tests PRIVATE "${PROJECT_SOURCE_DIR}/cudnn"
      "${PROJECT_SOURCE_DIR}/cudnn/include")
    target_compile_definitions(cudnn_tests PRIVATE CUDNN_WITHOUT_CUDA_HEADERS)
  endif()
  if(area STREQUAL "cuda")
    target_compile_definitions(cuda_tests PRIVATE
      ASHLAR_EMULATOR_FOLDER="${ashlar_emulator_folder}")
    add_dependencies(cuda_tests emulated_cuda emulated_nvrtc)
  endif()
  if(area IN_LIST ashlar_brief_areas)
    add_test(NAME ${area}.cases COMMAND ${area}_tests --gtest_brief=1)
    set_tests_properties(${area}.cases PROPERTIES LABELS ${area} TIMEOUT ${ashlar_test_timeout})
  else()
    gtest_discover_tests(${area}_tests
      TEST_PREFIX "${area}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
      PROPERTIES LABELS ${area} TIMEOUT ${ashlar_test_timeout})
  endif()
endfunction()

file(GLOB_RECURSE ashlar_test_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
     "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
set(ashlar_test_areas ${ashlar_test_files})
list(FILTER ashlar_test_areas INCLUDE REGEX "/")
list(TRANSFORM ashlar_test_areas REPLACE "/.*" "")
list(REMOVE_DUPLICATES ashlar_test_areas)
list(REMOVE_ITEM ashlar_test_areas fuzz)
foreach(area IN LISTS ashlar_test_areas)
  add_test_area(${area})
endforeach()

# cuDNN's legacy API in C99: each tests/cudnn/c/<family>_test.c is a program and a test. They link our
# libcudart for machines without CUDA; NVIDIA's replaces it if it comes first in LD_LIBRARY_PATH.
file(GLOB ashlar_cudnn_c_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cudnn/c/*_test.c")
if(TARGET cudart AND ashlar_cudnn_c_tests)
  enable_language(C)
  file(GLOB ashlar_cudnn_c_support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cudnn/c/*.c")
  list(FILTER ashlar_cudnn_c_support EXCLUDE REGEX "_test\\.c$")
  add_library(cudnn_oracle STATIC ${ashlar_cudnn_c_support})
  target_link_libraries(cudnn_oracle PUBLIC ashlar cudnn cudart PRIVATE ashlar_build_flags)
  add_custom_target(cudnn_c_programs)
  foreach(source IN LISTS ashlar_cudnn_c_tests)
    cmake_path(GET source STEM name)
    string(REPLACE "_test" "" family "${name}")
    add_executable(cudnn_c_${family} "${source}")
    target_link_libraries(cudnn_c_${family} PRIVATE cudnn_oracle ashlar_build_flags)
    set_target_properties(cudnn_c_${family} cudnn_oracle PROPERTIES C_STANDARD 99
                          C_EXTENSIONS OFF)
    add_dependencies(cudnn_c_programs cudnn_c_${family})
    add_test(NAME cudnn.c.${family} COMMAND cudnn_c_${family})
    set_tests_properties(cudnn.c.${family} PROPERTIES LABELS cudnn TIMEOUT ${ashlar_test_timeout})
  endforeach()
  # A user's program with LD_LIBRARY_PATH alone. Not under sanitizers, whose runtime would have to be
  # loaded first.
  find_program(ASHLAR_PYTHON3 python3)
  if(ASHLAR_PYTHON3 AND NOT ASHLAR_SANITIZE)
    add_test(NAME cudnn.one_folder
             COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/tests/cudnn/one_folder_test.py"
                     --cc "${CMAKE_C_COMPILER}" --folder "$<TARGET_FILE_DIR:cudart>")
    set_tests_properties(cudnn.one_folder PROPERTIES LABELS cudnn TIMEOUT 120)
  endif()
endif()

# COST is the approximate duration in seconds: ctest starts the longest tests first.

# Every engine again on AVX2 and SSE4, as far as the CPU supports them: one eighth of the cases by
# default, all with --long.
foreach(target IN ITEMS avx2 sse4)
  foreach(area IN ITEMS cpu ops)
    foreach(part RANGE 7)
      add_test(NAME target.${target}.${area}.${part}
               COMMAND ${area}_tests --gtest_brief=1 --gtest_filter=-AttentionLong.*)
      set(labels target)
      if(part GREATER 0)
        list(APPEND labels long)
      endif()
      set_tests_properties(target.${target}.${area}.${part} PROPERTIES
        ENVIRONMENT "ASHLAR_TARGET=${target};GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${part}"
        LABELS "${labels}" COST 20 TIMEOUT ${ashlar_test_timeout})
    endforeach()
  endforeach()
endforeach()

# Tests of tests/cuda that need a GPU (suites named Gpu...), on the emulated GPU.
foreach(part RANGE 1)
  add_test(NAME emulated.cuda.${part} COMMAND ${ashlar_emulated} "$<TARGET_FILE:cuda_tests>"
           --gtest_brief=1 "--gtest_filter=Gpu*:*/Gpu*")
  set_tests_properties(emulated.cuda.${part} PROPERTIES
    ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${part}"
    LABELS "cuda;emulated" COST 110 TIMEOUT ${ashlar_test_timeout})
endforeach()

if(TARGET cudnn_tests)
  add_test(NAME emulated.cudnn.calls COMMAND ${ashlar_emulated} "$<TARGET_FILE:cudnn_tests>"
           --gtest_brief=1 "--gtest_filter=Gpu*")
  set_tests_properties(emulated.cudnn.calls PROPERTIES
    LABELS "cudnn;emulated" COST 40 TIMEOUT ${ashlar_test_timeout})
endif()

# On the emulated GPU: the first case of every operation on every CUDA engine, and a few random graphs;
# with --long all cases and more graphs.
function(add_emulated_test name program short shards part)
  add_test(NAME ${name} COMMAND ${ashlar_emulated} "$<TARGET_FILE:${program}>" --gtest_brief=1
           "--gtest_filter=*EveryEngine*:*RandomGraphs*")
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "ASHLAR_TEST_SHORT=${short};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${part}"
    LABELS "emulated;${ARGN}" COST 40 TIMEOUT ${ashlar_test_timeout})
endfunction()
foreach(part RANGE 1)
  add_emulated_test(emulated.ops.first.${part} ops_tests first 2 ${part})
endforeach()
add_emulated_test(emulated.random.0 random_tests 1 16 0)
foreach(part RANGE 15)
  add_emulated_test(emulated.ops.${part} ops_tests 1 16 ${part} long)
endforeach()
foreach(part RANGE 1 15)
  add_emulated_test(emulated.random.${part} random_tests 1 16 ${part} long)
endforeach()

if(TARGET bench_tests)
  add_test(NAME emulated.bench COMMAND ${ashlar_emulated} "$<TARGET_FILE:bench_tests>"
           --gtest_brief=1 "--gtest_filter=Gpu*")
  set_tests_properties(emulated.bench PROPERTIES
    LABELS "bench;emulated" TIMEOUT ${ashlar_test_timeout})
endif()

if(ASHLAR_BUILD_EXAMPLES)
  foreach(source IN LISTS ASHLAR_EXAMPLES)
    cmake_path(GET source STEM name)
    add_test(NAME examples.${name} COMMAND example_${name}
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(examples.${name} PROPERTIES
                         LABELS examples TIMEOUT ${ashlar_test_timeout})
  endforeach()
endif()

# Lint tests: the style of the tree, and that docs/performance.md and docs/performance/ match the
# records. The checkers themselves are tested on small inputs with planted faults.
find_program(ASHLAR_PYTHON3 python3)
foreach(check IN ITEMS tools/check_style.py tools/performance_page.py
                      tests/lint/check_ashlar_library_test.py tests/lint/check_link_layers_test.py
                      tests/lint/check_style_test.py
                      tests/lint/compare_cpu_test.py tests/lint/compare_cudnn_headers_test.py
                      tests/lint/compare_kernels_test.py tests/lint/kernel_variants_test.py
                      tests/lint/merge_configs_test.py
                      tests/lint/performance_page_test.py)
  cmake_path(GET check STEM name)
  if(ASHLAR_PYTHON3)
    add_test(NAME lint.${name} COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/${check}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  else()
    add_test(NAME lint.${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no python3")
    set_tests_properties(lint.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
  endif()
  set_tests_properties(lint.${name} PROPERTIES LABELS lint TIMEOUT 120)
endforeach()

# The layers of src/ by what the linker resolves.
if(ASHLAR_PYTHON3)
  add_test(NAME lint.check_link_layers COMMAND "${ASHLAR_PYTHON3}"
           "${PROJECT_SOURCE_DIR}/tools/check_link_layers.py" "${PROJECT_BINARY_DIR}")
  set_tests_properties(lint.check_link_layers PROPERTIES LABELS lint TIMEOUT 120)
endif()

# The cuDNN headers compile, match the export list, and equal NVIDIA's if these are found.
foreach(check IN ITEMS compile exports match)
  if(ASHLAR_PYTHON3)
    add_test(NAME cudnn.headers.${check}
             COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/tools/compare_cudnn_headers.py"
                     ${check} --cxx "${CMAKE_CXX_COMPILER}")
  else()
    add_test(NAME cudnn.headers.${check} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: no python3")
  endif()
  set_tests_properties(cudnn.headers.${check} PROPERTIES
    LABELS cudnn TIMEOUT 120 SKIP_REGULAR_EXPRESSION "^skipped: ")
endforeach()

# libashlar.so.0 and libcudnn.so.9 as files: exported symbols, versions, dependencies, size.
set(ashlar_library_options)
if(ASHLAR_SANITIZE)
  set(ashlar_library_options --no-size)
endif()
if(ASHLAR_PYTHON3)
  add_test(NAME cudnn.library
           COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/tools/check_cudnn_library.py"
                   "$<TARGET_FILE:cudnn>" ${ashlar_library_options})
  set_tests_properties(cudnn.library PROPERTIES LABELS cudnn TIMEOUT 120)
endif()
if(ASHLAR_PYTHON3 AND TARGET ashlar_shared)
  add_test(NAME install.library
           COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/tools/check_ashlar_library.py"
                   "$<TARGET_FILE:ashlar_shared>" ${ashlar_library_options})
  set_tests_properties(install.library PROPERTIES LABELS install TIMEOUT 120)
endif()

# The installed library in other projects. A program of another project has no sanitizer's runtime.
if(ASHLAR_PYTHON3 AND TARGET ashlar_shared AND ASHLAR_INSTALL AND NOT ASHLAR_SANITIZE)
  enable_language(C)
  add_test(NAME install.use
           COMMAND "${ASHLAR_PYTHON3}" "${PROJECT_SOURCE_DIR}/tests/install/install_test.py"
                   --build "${PROJECT_BINARY_DIR}" --generator "${CMAKE_GENERATOR}"
                   --cc "${CMAKE_C_COMPILER}" --cxx "${CMAKE_CXX_COMPILER}")
  set_tests_properties(install.use PROPERTIES LABELS install COST 60 TIMEOUT ${ashlar_test_timeout})
endif()
