// Fuzzes the reader of saved plans: malformed text may only throw ashlar::Error. Accepted plans
// round-trip through JSON.
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
