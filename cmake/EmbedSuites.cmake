# cmake -DFOLDER=shapes -DOUTPUT=FILE.cpp -P EmbedSuites.cmake: the suites as text inside the program.

file(GLOB suites "${FOLDER}/*.json")
list(SORT suites)
set(entries "")
foreach(suite IN LISTS suites)
  cmake_path(GET suite STEM name)
  file(READ "${suite}" text)
  string(APPEND entries "    {\"${name}\", R\"suite(${text})suite\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made from shapes/ by cmake/EmbedSuites.cmake.
#include \"suite.hpp\"

namespace ashlar::bench {

static constexpr SuiteText kSuites[] = {
${entries}};

std::span<const SuiteText> built_in_suites() { return kSuites; }

}  // namespace ashlar::bench
")
