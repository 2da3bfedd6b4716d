#include "backend/checks/operand.hpp"

#include <algorithm>
#include <limits>

#include "backend/attribute_table.hpp"
#include "core/data_type.hpp"

namespace ashlar::cudnn {

std::string text_of(ExtentsView extents) {
  return fmt::format("[{}]", fmt::join(extents.begin(), extents.end(), ", "));
}

Operand::Operand(const Record* tensor, cudnnBackendAttributeName_t name)
    : name_(name), tensor_(tensor) {
  if (tensor == nullptr) return;
  const ExtentsView tensor_extents = tensor->integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  dims_.assign(tensor_extents.begin(), tensor_extents.end());
  const std::int64_t vector = tensor->integer(CUDNN_ATTR_TENSOR_VECTOR_COUNT);
  const std::int64_t axis = tensor->integer(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION);
  if (vector > 1) dims_.at(static_cast<std::size_t>(axis)) *= vector;
}

Operand Operand::merged(int axis) const {
  Operand result = *this;
  const auto first = result.dims_.begin() + axis;
  *first *= *(first + 1);
  result.dims_.erase(first + 1);
  return result;
}

cudnnDataType_t Operand::type() const {
  return static_cast<cudnnDataType_t>(tensor_->integer(CUDNN_ATTR_TENSOR_DATA_TYPE));
}

bool Operand::has_one_element() const {
  return std::ranges::all_of(dims(), [](std::int64_t extent) { return extent == 1; });
}

bool Operand::is_vector_type() const { return vector_width(type()) > 1; }

bool Operand::has_vectors() const {
  return is_vector_type() || tensor_->integer(CUDNN_ATTR_TENSOR_VECTOR_COUNT) > 1;
}

bool Operand::is_virtual() const { return tensor_->integer(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0; }

std::string Operand::start() const {
  return fmt::format("{} (tensor {})", attribute_name(name_),
                     tensor_->integer(CUDNN_ATTR_TENSOR_UNIQUE_ID));
}

void Operand::fail_shape(const std::string& got, const std::string& expected) const {
  fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "{}: got {}, expected {}", start(), got, expected);
}

const Operand& Operand::require_set() const {
  if (!is_set())
    fail(CUDNN_STATUS_BAD_PARAM, "{}: not set, expected a tensor", attribute_name(name_));
  return *this;
}

const Operand& Operand::require_rank(int min, int max) const {
  if (!is_set() || (rank() >= min && rank() <= max)) return *this;
  fail_shape(fmt::format("rank {}", rank()),
             min == max ? fmt::format("{}", min) : fmt::format("{} to {}", min, max));
}

const Operand& Operand::require_dims(ExtentsView expected, const char* whose) const {
  if (is_set() && !std::ranges::equal(dims(), expected))
    fail_shape("dims " + text_of(dims()), text_of(expected) + whose);
  return *this;
}

const Operand& Operand::require_broadcastable(ExtentsView target) const {
  return is_set() ? require_broadcastable(target, dims()) : *this;
}

const Operand& Operand::require_broadcastable(ExtentsView target, ExtentsView tensor_dims) const {
  if (has_one_element()) return *this;
  bool fits = tensor_dims.size() == target.size();
  for (std::size_t axis = 0; fits && axis < target.size(); ++axis)
    fits = tensor_dims[axis] == 1 || tensor_dims[axis] == target[axis];
  if (!fits) fail_shape("dims " + text_of(dims()), "dims that broadcast to " + text_of(target));
  return *this;
}

const Operand& Operand::require_divisor(ExtentsView target) const {
  if (!is_set()) return *this;
  bool fits = dims().size() == target.size();
  for (std::size_t axis = 0; fits && axis < target.size(); ++axis)
    fits = target[axis] % dims()[axis] == 0;
  if (!fits) fail_shape("dims " + text_of(dims()), "divisors of " + text_of(target));
  return *this;
}

const Operand& Operand::require_one_element() const {
  if (is_set() && !has_one_element()) fail_shape("dims " + text_of(dims()), "one element");
  return *this;
}

const Operand& Operand::require_integer() const {
  if (!is_set() || is_integer(require_dtype(type(), attribute_name(name_)))) return *this;
  fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected an integer type", start(),
       data_type_name(type()));
}

const Operand& Operand::require_floating() const {
  if (!is_set() || is_floating(require_dtype(type(), attribute_name(name_)))) return *this;
  fail(CUDNN_STATUS_BAD_PARAM, "{}: got {}, expected a floating-point type", start(),
       data_type_name(type()));
}

void fail_bound(cudnnBackendAttributeName_t name, const std::string& got,
                const std::string& expected) {
  fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "{}: got {}, expected {}", attribute_name(name), got,
       expected);
}

void require_min(const Record& record, cudnnBackendAttributeName_t name, std::int64_t min) {
  const std::int64_t value = record.integer(name);
  if (value < min) fail_bound(name, std::to_string(value), fmt::format("at least {}", min));
}

void require_set(const Record& record, std::initializer_list<cudnnBackendAttributeName_t> names) {
  for (const cudnnBackendAttributeName_t name : names)
    if (!record.has(name) && !find_attribute(name)->default_value)
      fail(CUDNN_STATUS_BAD_PARAM, "{}: not set, expected a value before finalize",
           attribute_name(name));
}

void require_within(const Record& record, cudnnBackendAttributeName_t name, std::int64_t min,
                    std::int64_t max) {
  const ExtentsView values = record.integers(name);
  if (std::ranges::all_of(values, [=](std::int64_t v) { return v >= min && v <= max; })) return;
  const bool is_open = max == std::numeric_limits<std::int64_t>::max();
  fail_bound(name, values.size() == 1 ? std::to_string(values.front()) : text_of(values),
             is_open ? fmt::format("at least {}", min) : fmt::format("{} to {}", min, max));
}

void require_count(std::size_t got, cudnnBackendAttributeName_t name, std::int64_t count,
                   const char* whose) {
  if (static_cast<std::int64_t>(got) != count)
    fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "{}: got {} elements, expected {} as {} has",
         attribute_name(name), got, count, whose);
}

}  // namespace ashlar::cudnn
