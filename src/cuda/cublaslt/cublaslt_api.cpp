#include "cuda/cublaslt/cublaslt_api.hpp"

#include "base/fail.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "cuda/driver/library_files.hpp"

namespace ashlar::cuda {

namespace {

CublasLt open_cublaslt() {
  CublasLt result;
  if (driver().api == nullptr) {
    result.reason = driver().reason;
    return result;
  }
  if (settings().cublaslt == "off") {
    result.reason = "ASHLAR_CUBLASLT is off";
    return result;
  }
  const FoundLibrary found = find_library(cublaslt_query());
  if (!found.library.is_open()) {
    result.reason = fmt::format("no cuBLASLt. Tried:{}", found.tried_text());
    return result;
  }
  result.path = found.library.path();
  static CublasLtApi api;
  const char* missing = nullptr;
  const auto load = [&](auto*& function, const char* name) {
    if (!found.library.load(function, name) && missing == nullptr) missing = name;
  };
  load(api.create, "cublasLtCreate");
  load(api.error_text, "cublasLtGetStatusString");
  load(api.version, "cublasLtGetVersion");
  load(api.create_layout, "cublasLtMatrixLayoutCreate");
  load(api.destroy_layout, "cublasLtMatrixLayoutDestroy");
  load(api.set_layout, "cublasLtMatrixLayoutSetAttribute");
  load(api.init_product, "cublasLtMatmulDescInit_internal");
  load(api.set_product, "cublasLtMatmulDescSetAttribute");
  load(api.create_preference, "cublasLtMatmulPreferenceCreate");
  load(api.destroy_preference, "cublasLtMatmulPreferenceDestroy");
  load(api.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  load(api.choose, "cublasLtMatmulAlgoGetHeuristic");
  load(api.multiply, "cublasLtMatmul");
  if (missing != nullptr)
    result.reason =
        fmt::format("{} is no cuBLASLt that Ashlar can use: it has no {}", result.path, missing);
  else
    result.api = &api;
  return result;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt opened = [] {
    CublasLt result = open_cublaslt();
    if (result.api != nullptr)
      log(LogLevel::info, "cuda: GEMMs may use {}", result.path);
    else
      log(LogLevel::debug, "cuda: {}", result.reason);
    return result;
  }();
  return opened;
}

void check_lt(int error, const char* what) {
  if (error != 0)
    fail(ErrorCode::device, "cuda: {}: cuBLASLt: {}", what, cublaslt().api->error_text(error));
}

}  // namespace ashlar::cuda
