# Programs on top of the public headers: the ashlar command, the benchmark, the examples.

# add_public_program(TARGET FOLDER SOURCES...): a program that sees include/ and its own folder, not src/.
function(add_public_program target folder)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/${folder}")
  target_link_libraries(${target} PRIVATE ashlar ashlar_build_flags)
endfunction()

# The benchmark, a library for the command, with the suites of shapes/ embedded. ASHLAR_BUILD_BENCH
# adds oneDNN as its peer on the CPU.
if(ASHLAR_BUILD_CLI)
  file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp"
       "${PROJECT_SOURCE_DIR}/bench/peers/*/*.cpp")
  if(ASHLAR_BUILD_BENCH)
    list(FILTER bench_sources EXCLUDE REGEX "/no_peer\\.cpp$")
  else()
    list(FILTER bench_sources EXCLUDE REGEX "/onednn_[a-z_]*\\.cpp$")
  endif()
  file(GLOB bench_suites CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/shapes/*.json"
       "${PROJECT_SOURCE_DIR}/shapes/cuda/*.json")
  set(bench_embedded "${PROJECT_BINARY_DIR}/generated/built_in_suites.cpp")
  add_custom_command(OUTPUT "${bench_embedded}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${PROJECT_SOURCE_DIR}/shapes" "-DOUTPUT=${bench_embedded}"
            -P "${PROJECT_SOURCE_DIR}/cmake/EmbedSuites.cmake"
    DEPENDS ${bench_suites} "${PROJECT_SOURCE_DIR}/cmake/EmbedSuites.cmake"
    COMMENT "Embedding the suites of shapes/" VERBATIM)
  add_library(ashlar_bench STATIC ${bench_sources} "${bench_embedded}")
  target_include_directories(ashlar_bench PUBLIC "${PROJECT_SOURCE_DIR}"
                                          PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(ashlar_bench
    PUBLIC ashlar
    PRIVATE ashlar_build_flags ashlar_highway_targets ashlar_highway ashlar_fmt
            nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
  target_compile_options(ashlar_bench PRIVATE ${ashlar_quick_to_compile})
  # The roofline loops need the same optimisation level in every build.
  set_source_files_properties("${PROJECT_SOURCE_DIR}/bench/calibration.cpp" PROPERTIES
                              COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
  precompile_headers(ashlar_bench <fmt/format.h> <nlohmann/json.hpp> <ashlar/ashlar.hpp>)
  read_together(ashlar_bench 5 bench bench/peers/cublaslt bench/peers/cudnn)
  if(ASHLAR_BUILD_BENCH)
    target_link_libraries(ashlar_bench PRIVATE ashlar_dnnl)
  endif()
  if(ASHLAR_HAVE_OPENMP)
    target_link_libraries(ashlar_bench PRIVATE OpenMP::OpenMP_CXX)
  endif()
endif()

# Fit the constants of the cost models to recorded timings. Built on demand. They define
# tile_calibration() and skinny_calibration() themselves, so the linker skips the library's.
if(ASHLAR_BUILD_CLI)
  foreach(program IN ITEMS fit_costs fit_skinny)
    add_executable(${program} EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/${program}.cpp")
    target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${program} PRIVATE ashlar_bench ashlar ashlar_build_flags ashlar_fmt
                                             nlohmann_json::nlohmann_json)
  endforeach()
endif()

# The command. All but main.cpp is a library, so that tests can link its readers and printers.
file(GLOB ASHLAR_CLI_SOURCES CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.cpp"
     "${PROJECT_SOURCE_DIR}/cli/doctor/*.cpp" "${PROJECT_SOURCE_DIR}/cli/html/*.cpp")
if(ASHLAR_BUILD_CLI AND ASHLAR_CLI_SOURCES)
  set(cli_parts ${ASHLAR_CLI_SOURCES})
  list(FILTER cli_parts EXCLUDE REGEX "/main\\.cpp$")
  set(cli_libraries CLI11::CLI11 nlohmann_json::nlohmann_json ashlar_fmt)
  if(cli_parts)
    add_library(ashlar_cli_parts STATIC ${cli_parts})
    # Parsing CLI11 dominates the compile time: unity build.
    set_target_properties(ashlar_cli_parts PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
    target_include_directories(ashlar_cli_parts PUBLIC "${PROJECT_SOURCE_DIR}/cli")
    precompile_headers(ashlar_cli_parts <fmt/format.h> <nlohmann/json.hpp> <CLI/CLI.hpp>
                       <ashlar/ashlar.hpp>)
    target_compile_options(ashlar_cli_parts PRIVATE ${ashlar_quick_to_compile})
    target_link_libraries(ashlar_cli_parts PUBLIC ashlar ashlar_bench ${cli_libraries}
                                           PRIVATE ashlar_build_flags)
    set(cli_libraries ashlar_cli_parts)
  endif()
  if("${PROJECT_SOURCE_DIR}/cli/main.cpp" IN_LIST ASHLAR_CLI_SOURCES)
    add_public_program(ashlar_cli cli "${PROJECT_SOURCE_DIR}/cli/main.cpp")
    target_link_libraries(ashlar_cli PRIVATE ${cli_libraries})
    set_target_properties(ashlar_cli PROPERTIES OUTPUT_NAME ashlar
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  endif()
endif()

# Each example is one file, one program and a test that it exits with 0. Examples in C prove that
# ashlar.h is a C99 header. Those named cudnn_... are cuDNN programs and link only libcudnn and
# libcudart.
file(GLOB ASHLAR_EXAMPLES CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/examples/*.cpp" "${PROJECT_SOURCE_DIR}/examples/*.c")
if(ASHLAR_BUILD_EXAMPLES)
  enable_language(C)
  foreach(source IN LISTS ASHLAR_EXAMPLES)
    cmake_path(GET source STEM name)
    if(name MATCHES "^cudnn_" AND NOT ASHLAR_BUILD_CUDNN)
      continue()
    elseif(name MATCHES "^cudnn_")
      add_executable(example_${name} "${source}")
      target_link_libraries(example_${name} PRIVATE cudnn cudart m ashlar_build_flags)
    else()
      add_public_program(example_${name} examples "${source}")
    endif()
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} C_STANDARD 99
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  endforeach()
endif()
