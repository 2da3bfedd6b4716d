// Bad calls return an exact status and message: tests/cudnn/data/bad_calls.txt has one line for
// each, "name | status | message". ASHLAR_UPDATE_GOLDENS=1 rewrites it.
#include "cudnn/bad_calls.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "core/guarded.hpp"
#include "cudnn/scoped_descriptor.hpp"

namespace ashlar::cudnn::test {

namespace {

constexpr const char* kGolden = ASHLAR_SOURCE_DIR "/tests/cudnn/data/bad_calls.txt";

BadCalls all_bad_calls() {
  BadCalls all;
  for (const auto& group :
       {bad_handle_calls, bad_attribute_calls, bad_parameter_calls, bad_operation_calls,
        bad_norm_and_attention_calls, bad_plan_calls, bad_null_calls, bad_legacy_calls})
    for (BadCall& call : group()) all.push_back(std::move(call));
  return all;
}

// "name | 2002 | CUDNN_STATUS_BAD_PARAM_NULL_POINTER: cudnnCreate: handle: got null, ..."
std::string line_of(const BadCall& bad) {
  report("nothing", CUDNN_STATUS_INTERNAL_ERROR, "no call was made");
  const std::string before = last_error();
  const cudnnStatus_t status = bad.call();
  EXPECT_NE(status, CUDNN_STATUS_SUCCESS) << bad.name;
  EXPECT_NE(last_error(), before) << bad.name << ": no message";
  const std::string sentence = last_error();
  // The text of a JSON parser depends on its version.
  return bad.name + " | " + std::to_string(status) + " | " +
         sentence.substr(0, sentence.find("[json."));
}

TEST(CudnnBadCalls, MatchTheGoldenFile) {
  std::set<std::string> names;
  std::vector<std::string> lines;
  for (const BadCall& bad : all_bad_calls()) {
    EXPECT_TRUE(names.insert(bad.name).second) << bad.name;
    lines.push_back(line_of(bad));
  }
  EXPECT_GE(lines.size(), 200U);
  if (std::getenv("ASHLAR_UPDATE_GOLDENS") != nullptr) {
    std::ofstream golden(kGolden);
    for (const std::string& line : lines) golden << line << "\n";
    return;
  }
  std::ifstream golden(kGolden);
  std::size_t next = 0;
  for (std::string expected; std::getline(golden, expected); ++next)
    EXPECT_EQ(next < lines.size() ? lines[next] : "nothing", expected);
  EXPECT_EQ(next, lines.size()) << "ASHLAR_UPDATE_GOLDENS=1 rewrites " << kGolden;
}

}  // namespace

}  // namespace ashlar::cudnn::test
