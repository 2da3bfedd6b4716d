// Whether elements are what an attribute takes, wherever they come from: a caller's array or text.
#pragma once

#include "backend/attribute_table.hpp"
#include "backend/record.hpp"

namespace ashlar::cudnn {

// The row of an attribute of this descriptor; throws Failure for a number that is no attribute, and
// for an attribute of another descriptor.
const AttributeRow& attribute_of(cudnnBackendDescriptorType_t descriptor, std::int64_t name);

// Throw Failure for a number of elements, or for elements, that the attribute does not take.
void check_count(const AttributeRow& row, std::int64_t count);
void check_value(const AttributeRow& row, const AttributeValue& value);

}  // namespace ashlar::cudnn
