// Checks of attribute values, shared by cudnnBackendSetAttribute() and the JSON reader.
#pragma once

#include "backend/attribute_table.hpp"
#include "backend/record.hpp"

namespace ashlar::cudnn {

// The row of an attribute of this descriptor type. Throws Failure when `name` is not an attribute,
// or belongs to another descriptor type.
const AttributeRow& attribute_of(cudnnBackendDescriptorType_t descriptor, std::int64_t name);

// Throw Failure for a count, or a value, that the attribute does not accept.
void check_count(const AttributeRow& row, std::int64_t count);
void check_value(const AttributeRow& row, const AttributeValue& value);

}  // namespace ashlar::cudnn
