// cudnnBackendSetAttribute() and cudnnBackendGetAttribute(), driven by the attribute table.
//
// Status codes (CUDNN_STATUS_BAD_PARAM_*): DESCRIPTOR_TYPE for an attribute of another descriptor
// type; ATTRIBUTE_TYPE for elements of the wrong type; SIZE_INSUFFICIENT for too few elements;
// OUT_OF_BOUND for too many, or for a value outside its enumeration; NULL_POINTER for a null array;
// NOT_FINALIZED for an element that is not finalized, or for a result that finalize has not
// computed yet; plain BAD_PARAM for everything else.
#include <algorithm>
#include <cstring>

#include "backend/attribute_value.hpp"
#include "backend/descriptor.hpp"
#include "core/guarded.hpp"
#include "core/handle.hpp"
#include "core/objects.hpp"

namespace ashlar::cudnn {

namespace {

void check_type(const AttributeRow& row, std::int64_t type) {
  if (row.elements.accepts(type)) return;
  const std::string other =
      row.elements.other ? fmt::format(" or {}", element_type_name(*row.elements.other)) : "";
  fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "{}: got elements of {} ({}), expected {}{}",
       row.text, element_type_name(type), type, element_type_name(row.elements.type), other);
}

// The caller's array need not be aligned to its elements.
template <class T>
T load(const void* elements, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(elements) + index * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store(void* elements, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(elements) + index * sizeof(T), &value, sizeof(T));
}

std::int64_t load_integer(cudnnBackendAttributeType_t type, const void* elements,
                          std::int64_t index) {
  switch (element_size(type)) {
    case 8: return load<std::int64_t>(elements, index);
    case 4: return load<std::int32_t>(elements, index);
    default: return load<unsigned char>(elements, index) != 0 ? 1 : 0;
  }
}

AttributeValue load_value(const AttributeRow& row, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* elements) {
  const auto all = [&](auto load_one) {
    std::vector<decltype(load_one(std::int64_t{0}))> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values.push_back(load_one(i));
    return AttributeValue(std::move(values));
  };
  switch (type) {
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return all([&](std::int64_t i) { return finalized(load<void*>(elements, i), row.text); });
    case CUDNN_TYPE_FLOAT:
      return all([&](std::int64_t i) { return static_cast<double>(load<float>(elements, i)); });
    case CUDNN_TYPE_DOUBLE: return all([&](std::int64_t i) { return load<double>(elements, i); });
    case CUDNN_TYPE_VOID_PTR: return all([&](std::int64_t i) { return load<void*>(elements, i); });
    case CUDNN_TYPE_HANDLE:
      return all([&](std::int64_t i) -> void* {
        return &object(load<cudnnHandle_t>(elements, i), row.text);
      });
    case CUDNN_TYPE_FRACTION:
      return all([&](std::int64_t i) { return load<cudnnFraction_t>(elements, i); });
    case CUDNN_TYPE_CHAR:
      if (count == 0) return std::string();
      return std::string(static_cast<const char*>(elements), static_cast<std::size_t>(count));
    default: return all([&](std::int64_t i) { return load_integer(type, elements, i); });
  }
}

// Writes one element into the caller's array, converted to the attribute type `type`.
struct ElementWriter {
  const AttributeRow& row;
  cudnnBackendAttributeType_t type;
  void* elements;

  void operator()(std::int64_t index, std::int64_t value) const {
    switch (element_size(type)) {
      case 8: return store(elements, index, value);
      case 4: return store(elements, index, static_cast<std::int32_t>(value));
      default: return store(elements, index, static_cast<unsigned char>(value));
    }
  }
  void operator()(std::int64_t index, double value) const {
    if (type == CUDNN_TYPE_FLOAT) return store(elements, index, static_cast<float>(value));
    store(elements, index, value);
  }
  void operator()(std::int64_t index, void* value) const { store(elements, index, value); }
  void operator()(std::int64_t index, cudnnFraction_t value) const {
    store(elements, index, value);
  }
  void operator()(std::int64_t index, char value) const { store(elements, index, value); }
  // The caller passes a descriptor of its own, which becomes a reference to the record.
  void operator()(std::int64_t index, const RecordRef& value) const {
    const std::shared_ptr<Contents> target = contents_of(load<void*>(elements, index), row.text);
    const std::scoped_lock lock(target->mutex);
    if (target->draft.type != value->type)
      fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "{}: got a {} to read into, expected a {}",
           row.text, descriptor_type_name(target->draft.type), descriptor_type_name(value->type));
    target->record = value;
  }
};

// Whether the value can be read as `type`. An attribute that accepts a descriptor or a scalar is
// read as the kind that was set.
bool holds(const AttributeValue& value, cudnnBackendAttributeType_t type) {
  const bool is_records = std::holds_alternative<std::vector<RecordRef>>(value);
  return is_records == (type == CUDNN_TYPE_BACKEND_DESCRIPTOR);
}

AttributeValue value_of(const Record& record, bool is_finalized, const AttributeRow& row) {
  if (record.finished != nullptr)
    if (std::optional<AttributeValue> value = record.finished->computed(row.name)) return *value;
  if (const auto found = record.attributes.find(row.name); found != record.attributes.end())
    return found->second;
  if (!is_finalized && row.access == Access::get_only)
    fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
         "{}: got a {} that is not finalized, expected a finalized one", row.text,
         descriptor_type_name(record.type));
  if (!row.default_value) return std::vector<std::int64_t>();
  if (row.elements.type == CUDNN_TYPE_FLOAT || row.elements.type == CUDNN_TYPE_DOUBLE)
    return std::vector<double>{*row.default_value};
  return std::vector<std::int64_t>{static_cast<std::int64_t>(*row.default_value)};
}

}  // namespace

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  return guarded(__func__, [&] {
    const std::shared_ptr<Contents> contents = contents_of(descriptor, "descriptor");
    const AttributeRow& row = attribute_of(contents->draft.type, number_of(name));
    if (row.access == Access::get_only)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: got a call that sets it, expected a read-only access",
           row.text);
    check_type(row, number_of(type));
    check_count(row, count);
    if (count > 0 && elements == nullptr)
      fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "{}: got null, expected an array of {} elements",
           row.text, count);
    AttributeValue value = load_value(row, type, count, elements);
    check_value(row, value);
    const std::scoped_lock lock(contents->mutex);
    if (contents->record != nullptr)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: got a {} that is finalized, expected one that is not",
           row.text, descriptor_type_name(row.owner));
    contents->draft.attributes[row.name] = std::move(value);
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t capacity,
                                       int64_t* count, void* elements) {
  return guarded(__func__, [&] {
    const std::shared_ptr<Contents> contents = contents_of(descriptor, "descriptor");
    const AttributeRow& row = attribute_of(contents->draft.type, number_of(name));
    check_type(row, number_of(type));
    if (capacity < 0)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: got a capacity of {}, expected 0 or more", row.text,
           capacity);
    const AttributeValue value = [&] {
      const std::scoped_lock lock(contents->mutex);
      const bool is_finalized = contents->record != nullptr;
      return value_of(is_finalized ? *contents->record : contents->draft, is_finalized, row);
    }();
    std::visit(
        [&](const auto& all) {
          const auto total = static_cast<std::int64_t>(all.size());
          if (total > 0 && !holds(value, type))
            fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                 "{}: got {}, expected the type it was set with", row.text,
                 element_type_name(type));
          if (elements != nullptr)
            for (std::int64_t i = 0; i < std::min(total, capacity); ++i)
              ElementWriter{row, type, elements}(i, all[static_cast<std::size_t>(i)]);
          if (count != nullptr) *count = total;
        },
        value);
  });
}
