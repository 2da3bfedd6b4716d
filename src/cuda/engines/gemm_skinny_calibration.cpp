#include "cuda/engines/gemm_skinny_calibration.hpp"

#include <algorithm>
#include <ashlar/error.hpp>
#include <iterator>
#include <string_view>

namespace ashlar::cuda {

namespace {

struct Row {
  std::string_view name;
  double value;
};
constexpr Row kTable[] = {
#include "cuda/engines/gemm_skinny_calibration.inc"
};

SkinnyCalibration read_table() {
  SkinnyCalibration result;
  visit_constants(result, [](const std::string& name, double& constant) {
    const auto* const row = std::find_if(std::begin(kTable), std::end(kTable),
                                         [&](const Row& one) { return one.name == name; });
    if (row == std::end(kTable))
      throw Error(ErrorCode::internal, "gemm_skinny_calibration.inc has no " + name);
    constant = row->value;
  });
  return result;
}

}  // namespace

const SkinnyCalibration& skinny_calibration() {
  static const SkinnyCalibration calibration = read_table();
  return calibration;
}

}  // namespace ashlar::cuda
