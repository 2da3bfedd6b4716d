# Fuzz targets. tests/fuzz/<name>_fuzz.cpp defines LLVMFuzzerTestOneInput; its corpus is
# tests/fuzz/corpus/<name>/. By default a small driver of our own replays the corpus and then seeded
# mutations of it; with ASHLAR_LIBFUZZER the same file becomes a libFuzzer program.

set(ASHLAR_FUZZ_RUNS 5000 CACHE STRING "Mutated inputs per fuzz target in ctest")
file(GLOB ashlar_fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
foreach(source IN LISTS ashlar_fuzz_sources)
  cmake_path(GET source STEM target)
  string(REGEX REPLACE "_fuzz$" "" name "${target}")
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(ASHLAR_LIBFUZZER)
    add_executable(${target} "${source}")
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    # libFuzzer writes what it finds into the first folder, so that one is scratch.
    set(scratch "${PROJECT_BINARY_DIR}/fuzz/${name}")
    file(MAKE_DIRECTORY "${scratch}")
    set(arguments -runs=${ASHLAR_FUZZ_RUNS} "${scratch}" "${corpus}")
  else()
    add_executable(${target} "${source}" "${PROJECT_SOURCE_DIR}/tests/fuzz/standalone_driver.cpp")
    set(arguments --runs ${ASHLAR_FUZZ_RUNS} --seed 1 "${corpus}")
  endif()
  target_link_libraries(${target} PRIVATE ashlar_test_support)
  add_test(NAME fuzz.${name} COMMAND ${target} ${arguments})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${ashlar_test_timeout})
endforeach()
