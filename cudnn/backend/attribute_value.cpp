#include "backend/attribute_value.hpp"

namespace ashlar::cudnn {

namespace {

// Whether the variant alternative matches the attribute type.
bool is_of(const AttributeValue& value, cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return std::holds_alternative<std::vector<RecordRef>>(value);
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DOUBLE: return std::holds_alternative<std::vector<double>>(value);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR: return std::holds_alternative<std::vector<void*>>(value);
    case CUDNN_TYPE_FRACTION: return std::holds_alternative<std::vector<cudnnFraction_t>>(value);
    case CUDNN_TYPE_CHAR: return std::holds_alternative<std::string>(value);
    default: return std::holds_alternative<std::vector<std::int64_t>>(value);
  }
}

void check_element(const AttributeRow& row, std::int64_t value) {
  // An immediate value in place of a descriptor (a seed) has no enumeration to check.
  if (row.elements.type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return;
  if (!is_value_of(row.elements.type, value))
    fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "{}: got {}, expected a value of {}", row.text, value,
         element_type_name(row.elements.type));
}

void check_element(const AttributeRow& row, const RecordRef& value) {
  if ((row.elements.descriptors & only(value->type)) == 0)
    fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "{}: got a {}, expected {}", row.text,
         descriptor_type_name(value->type), descriptors_text(row.elements.descriptors));
}

template <class T>
void check_element(const AttributeRow&, const T&) {}

}  // namespace

const AttributeRow& attribute_of(cudnnBackendDescriptorType_t descriptor, std::int64_t name) {
  const AttributeRow* row = find_attribute(name);
  if (row == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM, "name: got {}, expected a cudnnBackendAttributeName_t", name);
  if (row->owner != descriptor)
    fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "{}: got a {}, expected a {}", row->text,
         descriptor_type_name(descriptor), descriptor_type_name(row->owner));
  return *row;
}

void check_count(const AttributeRow& row, std::int64_t count) {
  const auto [min, max] = row.count;
  if (count >= min && count <= max) return;
  const cudnnStatus_t status = count < 0     ? CUDNN_STATUS_BAD_PARAM
                               : count < min ? CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT
                                             : CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
  const std::string expected = min == max ? std::to_string(min) : fmt::format("{} to {}", min, max);
  fail(status, "{}: got {} elements, expected {}", row.text, count, expected);
}

void check_value(const AttributeRow& row, const AttributeValue& value) {
  const auto& [type, descriptors, other] = row.elements;
  if (!is_of(value, type) && !(other && is_of(value, *other)))
    fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "{}: got elements of the wrong type, expected {}",
         row.text, element_type_name(type));
  std::visit(
      [&row](const auto& elements) {
        check_count(row, static_cast<std::int64_t>(elements.size()));
        for (const auto& element : elements) check_element(row, element);
      },
      value);
}

}  // namespace ashlar::cudnn
