// The attribute table: for every attribute its descriptor type, the type and number of its
// elements, its default and its access. Set, get and defaults are driven by this table alone.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "backend/element_type.hpp"

namespace ashlar::cudnn {

// A set of descriptor types: bit t for type t.
using DescriptorTypes = std::uint64_t;
constexpr DescriptorTypes only(cudnnBackendDescriptorType_t type) {
  return DescriptorTypes{1} << type;
}

// The element type of an attribute: one attribute type, or one of two.
struct Elements {
  cudnnBackendAttributeType_t type;
  DescriptorTypes descriptors = 0;  // accepted, for BACKEND_DESCRIPTOR elements
  std::optional<cudnnBackendAttributeType_t> other = {};

  bool accepts(std::int64_t requested) const { return requested == type || requested == other; }
};

struct Count {
  std::int64_t min = 1, max = 1;
};

enum class Access {
  set_and_get,
  get_only,  // computed by finalize, or filled by the library
};

struct AttributeRow {
  cudnnBackendDescriptorType_t owner;
  cudnnBackendAttributeName_t name;
  const char* text;  // "CUDNN_ATTR_TENSOR_DIMENSIONS"
  Elements elements;
  Count count = {};
  // The value of an attribute that was not set (one element).
  std::optional<double> default_value = {};
  Access access = Access::set_and_get;
};

std::span<const AttributeRow> attribute_rows();
// Null when `name` is not an attribute.
const AttributeRow* find_attribute(std::int64_t name);
// "CUDNN_ATTR_TENSOR_DIMENSIONS"; never null.
const char* attribute_name(std::int64_t name);

bool is_descriptor_type(std::int64_t type);
// "a CUDNN_BACKEND_TENSOR_DESCRIPTOR"; "an operation" for several.
std::string descriptors_text(DescriptorTypes types);

}  // namespace ashlar::cudnn
