// The contents of a descriptor of the graph interface. A program's descriptor owns a record; a
// record that others refer to is fixed by its finalize and lives as long as they do, also when the
// program destroys its descriptor first.
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

// The elements of one attribute. Integers, booleans, data types and every enumeration are
// integers; float and double are numbers.
using AttributeValue =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<RecordRef>,
                 std::vector<void*>, std::vector<cudnnFraction_t>, std::string>;

// What finalize made of a record, besides checking it: a graph, a list of configurations, a plan.
struct Finished {
  virtual ~Finished() = default;
  // The attributes that finalize gives the descriptor: results, sizes, notes, texts. Nothing for
  // the ones that it does not; a Failure for one that it cannot tell.
  virtual std::optional<AttributeValue> computed(cudnnBackendAttributeName_t) const { return {}; }
};

struct Record {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
  std::map<cudnnBackendAttributeName_t, AttributeValue> attributes = {};
  std::shared_ptr<const Finished> finished = {};  // never null once finalized

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }

  // The first element; of an attribute that was not set, the attribute table's default. Throw
  // Failure(BAD_PARAM) naming the attribute when there is none.
  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  double number(cudnnBackendAttributeName_t name) const;
  const Record& record(cudnnBackendAttributeName_t name) const;
  const RecordRef& reference(cudnnBackendAttributeName_t name) const;  // the same, to be kept
  void* pointer(cudnnBackendAttributeName_t name) const;
  const std::string& text(cudnnBackendAttributeName_t name) const;
  // With a default for an attribute that was not set.
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

// What finalize made of a record of this type; throws Failure(NOT_FINALIZED) before that.
template <class T>
const T& finished(const Record& record) {
  const auto* made = dynamic_cast<const T*>(record.finished.get());
  if (made == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "{}: got a descriptor that is not finalized",
         descriptor_type_name(record.type));
  return *made;
}

}  // namespace ashlar::cudnn
