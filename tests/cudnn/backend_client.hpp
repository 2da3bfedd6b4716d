// A small client of the graph API for tests: creates descriptors in one line each and runs graphs
// on vectors of doubles.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/dims.hpp>
#include <ashlar/dtype.hpp>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ashlar::test {

using Numbers = std::vector<double>;

// The value of an attribute. For enumerations the element type follows from the attribute.
using Setting =
    std::variant<std::int64_t, double, cudnnBackendDescriptor_t, std::vector<std::int64_t>,
                 std::vector<cudnnBackendDescriptor_t>, std::vector<cudnnFraction_t>>;
struct Attribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  Setting value;
};

struct TensorOptions {
  Dims strides = {};  // row-major unless given
  bool is_virtual = false, is_by_value = false;
  std::int64_t vector = 1;
  cudnnBackendDescriptor_t ragged_offset = nullptr;
};

// Owns the descriptors it creates. A call that fails throws CallFailed with its status and the last
// error.
class BackendClient {
 public:
  BackendClient();
  ~BackendClient();
  BackendClient(const BackendClient&) = delete;
  BackendClient& operator=(const BackendClient&) = delete;

  cudnnHandle_t handle() const { return handle_; }
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type,
                                const std::vector<Attribute>& attributes);
  cudnnBackendDescriptor_t tensor(std::int64_t uid, cudnnDataType_t type, const Dims& dims,
                                  const TensorOptions& options = {});
  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y,
                                     cudnnBackendDescriptor_t t = nullptr);
  // Builds a plan from operations, with the first configuration of the heuristics.
  cudnnBackendDescriptor_t plan(const std::vector<cudnnBackendDescriptor_t>& operations);
  cudnnBackendDescriptor_t config(const std::vector<cudnnBackendDescriptor_t>& operations);
  std::string plan_json(cudnnBackendDescriptor_t plan);

  // Runs a plan. `memory` holds the elements of each tensor in memory order, by uid; outputs start
  // with these contents. Returns the contents of all tensors afterwards.
  std::map<std::int64_t, Numbers> run(cudnnBackendDescriptor_t plan,
                                      const std::map<std::int64_t, Numbers>& memory,
                                      const std::vector<Attribute>& pack = {});

 private:
  struct TensorInfo {
    DType dtype;
    bool is_by_value;
  };
  cudnnHandle_t handle_ = nullptr;
  std::vector<cudnnBackendDescriptor_t> made_;
  std::map<std::int64_t, TensorInfo> tensors_;
};

// For tests of rejections: returns the status instead of throwing.
cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, const Attribute& attribute);

// A call that did not return CUDNN_STATUS_SUCCESS.
struct CallFailed : std::runtime_error {
  CallFailed(cudnnStatus_t answered, const std::string& sentence)
      : std::runtime_error(sentence), status(answered) {}
  cudnnStatus_t status;
};

}  // namespace ashlar::test
