// The reader of saved plans meets hostile text: it may refuse it with an ashlar::Error, nothing
// else. What it accepts is a plan that survives being written and read again.
#include <ashlar/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ashlar::Plan;
  std::string written;
  try {
    written =
        Plan::from_json(std::string_view(reinterpret_cast<const char*>(data), size)).to_json();
  } catch (const ashlar::Error&) {
    return 0;
  }
  // Outside the handler: an error from here on is a defect.
  if (Plan::from_json(written).to_json() != written)
    throw std::logic_error("JSON changed in a round trip");
  return 0;
}
