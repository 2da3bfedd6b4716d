// Record: the attributes of a descriptor of the graph API. Finalize makes a record immutable.
// Records refer to each other by shared_ptr, so one outlives the client's descriptor while others
// use it.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/failure.hpp"

namespace ashlar::cudnn {

// "CUDNN_BACKEND_TENSOR_DESCRIPTOR"; never null.
const char* descriptor_type_name(cudnnBackendDescriptorType_t type);

struct Record;
using RecordRef = std::shared_ptr<const Record>;

// The elements of one attribute. Integers, booleans, data types and enumerations are int64; float
// and double are double.
using AttributeValue =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<RecordRef>,
                 std::vector<void*>, std::vector<cudnnFraction_t>, std::string>;

// What finalize builds from a record: a graph, a list of engine configurations, a plan.
struct Finished {
  virtual ~Finished() = default;
  // The value of an attribute that finalize computes (results, sizes, notes, JSON). Empty for all
  // other attributes. May throw Failure.
  virtual std::optional<AttributeValue> computed(cudnnBackendAttributeName_t) const { return {}; }
};

struct Record {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
  std::map<cudnnBackendAttributeName_t, AttributeValue> attributes = {};
  std::shared_ptr<const Finished> finished = {};  // never null once finalized

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }

  // The first element, or the default of the attribute table. Throw Failure(BAD_PARAM) that names
  // the attribute when there is neither.
  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  double number(cudnnBackendAttributeName_t name) const;
  const Record& record(cudnnBackendAttributeName_t name) const;
  const RecordRef& reference(cudnnBackendAttributeName_t name) const;  // shares ownership
  void* pointer(cudnnBackendAttributeName_t name) const;
  const std::string& text(cudnnBackendAttributeName_t name) const;
  // The first element, or `fallback` when the attribute is not set.
  std::int64_t integer_or(cudnnBackendAttributeName_t name, std::int64_t fallback) const;
  double number_or(cudnnBackendAttributeName_t name, double fallback) const;
  const Record* record_or_null(cudnnBackendAttributeName_t name) const;
  // All elements; empty when not set.
  std::span<const std::int64_t> integers(cudnnBackendAttributeName_t name) const;
  std::span<const double> numbers(cudnnBackendAttributeName_t name) const;
  std::span<const RecordRef> records(cudnnBackendAttributeName_t name) const;
  std::span<void* const> pointers(cudnnBackendAttributeName_t name) const;
  std::span<const cudnnFraction_t> fractions(cudnnBackendAttributeName_t name) const;
};

// What finalize built from the record; throws Failure(NOT_FINALIZED) before finalize.
template <class T>
const T& finished(const Record& record) {
  const auto* result = dynamic_cast<const T*>(record.finished.get());
  if (result == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
         "{}: got a descriptor that is not finalized, expected a finalized one",
         descriptor_type_name(record.type));
  return *result;
}

}  // namespace ashlar::cudnn
