# cmake -DFOLDER=shapes -DOUTPUT=FILE.cpp -P EmbedSuites.cmake: embeds the suites in the program.

# shapes/ holds the suites for the CPU, shapes/cuda those for GPUs.
set(entries "")
foreach(device IN ITEMS cpu cuda)
  if(device STREQUAL "cpu")
    file(GLOB suites "${FOLDER}/*.json")
  else()
    file(GLOB suites "${FOLDER}/${device}/*.json")
  endif()
  list(SORT suites)
  foreach(suite IN LISTS suites)
    cmake_path(GET suite STEM name)
    file(READ "${suite}" text)
    string(APPEND entries
           "    {DeviceKind::${device}, \"${name}\", R\"suite(${text})suite\"},\n")
  endforeach()
endforeach()
file(WRITE "${OUTPUT}" "// Made from shapes/ by cmake/EmbedSuites.cmake.
#include \"suite.hpp\"

namespace ashlar::bench {

static constexpr SuiteText kSuites[] = {
${entries}};

std::span<const SuiteText> built_in_suites() { return kSuites; }

}  // namespace ashlar::bench
")
