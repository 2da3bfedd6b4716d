// RAII descriptors of the graph API for tests.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ashlar::cudnn::test {

std::string last_error();

class ScopedDescriptor;

// The elements of an attribute in the caller's array.
class Values {
 public:
  Values(std::initializer_list<std::int64_t> v) { all(CUDNN_TYPE_INT64, v); }
  Values(const std::vector<std::int64_t>& v) { all(CUDNN_TYPE_INT64, v); }
  Values(std::initializer_list<cudnnFraction_t> v) { all(CUDNN_TYPE_FRACTION, v); }
  Values(std::int64_t v) { one(CUDNN_TYPE_INT64, v); }
  Values(std::int32_t v) { one(CUDNN_TYPE_INT32, v); }
  Values(bool v) { one(CUDNN_TYPE_BOOLEAN, v); }
  Values(float v) { one(CUDNN_TYPE_FLOAT, v); }
  Values(double v) { one(CUDNN_TYPE_DOUBLE, v); }
  Values(cudnnBackendDescriptor_t v) { one(CUDNN_TYPE_BACKEND_DESCRIPTOR, v); }
  Values(const ScopedDescriptor& v);
  Values(cudnnHandle_t v) { one(CUDNN_TYPE_HANDLE, v); }
  Values(cudnnDataType_t v) { one(CUDNN_TYPE_DATA_TYPE, v); }
  Values(cudnnPointwiseMode_t v) { one(CUDNN_TYPE_POINTWISE_MODE, v); }
  Values(cudnnConvolutionMode_t v) { one(CUDNN_TYPE_CONVOLUTION_MODE, v); }
  Values(cudnnReduceTensorOp_t v) { one(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, v); }
  Values(cudnnResampleMode_t v) { one(CUDNN_TYPE_RESAMPLE_MODE, v); }
  Values(cudnnPaddingMode_t v) { one(CUDNN_TYPE_PADDING_MODE, v); }
  Values(cudnnRngDistribution_t v) { one(CUDNN_TYPE_RNG_DISTRIBUTION, v); }
  Values(cudnnBackendNormMode_t v) { one(CUDNN_TYPE_NORM_MODE, v); }
  Values(cudnnBackendNormFwdPhase_t v) { one(CUDNN_TYPE_NORM_FWD_PHASE, v); }
  Values(cudnnGenStatsMode_t v) { one(CUDNN_TYPE_GENSTATS_MODE, v); }
  Values(cudnnBnFinalizeStatsMode_t v) { one(CUDNN_TYPE_BN_FINALIZE_STATS_MODE, v); }
  Values(cudnnSignalMode_t v) { one(CUDNN_TYPE_SIGNAL_MODE, v); }
  Values(cudnnMoeGroupedMatmulMode_t v) { one(CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE, v); }
  Values(cudnnBackendHeurMode_t v) { one(CUDNN_TYPE_HEUR_MODE, v); }
  Values(cudnnBackendKnobType_t v) { one(CUDNN_TYPE_KNOB_TYPE, v); }
  Values(const std::string& v) { all(CUDNN_TYPE_CHAR, v); }
  static Values pointers(std::initializer_list<void*> v) {
    Values values;
    values.all(CUDNN_TYPE_VOID_PTR, v);
    return values;
  }
  static Values descriptors(std::initializer_list<cudnnBackendDescriptor_t> v) {
    Values values;
    values.all(CUDNN_TYPE_BACKEND_DESCRIPTOR, v);
    return values;
  }
  // An int32 as an element of a 4-byte type, valid or not.
  static Values raw(cudnnBackendAttributeType_t type, std::int32_t v) {
    Values values;
    values.one(type, v);
    return values;
  }

  cudnnBackendAttributeType_t type() const { return type_; }
  std::int64_t count() const { return count_; }
  const void* elements() const { return bytes_.empty() ? nullptr : bytes_.data(); }

 private:
  Values() = default;
  template <class T>
  void one(cudnnBackendAttributeType_t type, const T& value) {
    all(type, std::initializer_list<T>{value});
  }
  template <class Range>
  void all(cudnnBackendAttributeType_t type, const Range& range) {
    type_ = type;
    for (const auto& value : range) {
      const char* bytes = reinterpret_cast<const char*>(&value);
      bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
      ++count_;
    }
  }

  cudnnBackendAttributeType_t type_ = CUDNN_TYPE_INT64;
  std::int64_t count_ = 0;
  std::vector<char> bytes_;
};

// A descriptor that is destroyed at scope exit.
class ScopedDescriptor {
 public:
  using Attribute = std::pair<cudnnBackendAttributeName_t, Values>;

  explicit ScopedDescriptor(cudnnBackendDescriptorType_t type,
                            std::initializer_list<Attribute> attributes = {});
  ScopedDescriptor(ScopedDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  ScopedDescriptor& operator=(ScopedDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~ScopedDescriptor() { cudnnBackendDestroyDescriptor(descriptor_); }

  operator cudnnBackendDescriptor_t() const { return descriptor_; }  // NOLINT: short to write

  cudnnStatus_t set(cudnnBackendAttributeName_t name, const Values& values) const;
  cudnnStatus_t finalize() const { return cudnnBackendFinalize(descriptor_); }
  // Finalizes it; throws on failure, which is a bug of the test.
  ScopedDescriptor done() &&;

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

inline Values::Values(const ScopedDescriptor& v)
    : Values(static_cast<cudnnBackendDescriptor_t>(v)) {}

// A finalized row-major tensor.
ScopedDescriptor tensor(std::int64_t uid, const std::vector<std::int64_t>& dims,
                        cudnnDataType_t type = CUDNN_DATA_FLOAT);

}  // namespace ashlar::cudnn::test
