#include "backend/record.hpp"

#include "backend/attribute_table.hpp"

namespace ashlar::cudnn {

namespace {

// The elements, or null when the attribute is not set or holds another alternative.
template <class T>
const T* find(const Record& record, cudnnBackendAttributeName_t name) {
  const auto found = record.attributes.find(name);
  return found != record.attributes.end() ? std::get_if<T>(&found->second) : nullptr;
}

template <class T>
std::span<const T> all(const Record& record, cudnnBackendAttributeName_t name) {
  const auto* elements = find<std::vector<T>>(record, name);
  return elements != nullptr ? std::span<const T>(*elements) : std::span<const T>();
}

[[noreturn]] void fail_not_set(cudnnBackendAttributeName_t name) {
  fail(CUDNN_STATUS_BAD_PARAM, "{}: not set, expected a value before finalize",
       attribute_name(name));
}

template <class T>
const T& first(const Record& record, cudnnBackendAttributeName_t name) {
  const auto elements = all<T>(record, name);
  if (elements.empty()) fail_not_set(name);
  return elements.front();
}

double default_of(cudnnBackendAttributeName_t name) {
  const AttributeRow* row = find_attribute(name);
  if (row == nullptr || !row->default_value) fail_not_set(name);
  return *row->default_value;
}

}  // namespace

std::int64_t Record::integer(cudnnBackendAttributeName_t name) const {
  const auto elements = integers(name);
  return elements.empty() ? static_cast<std::int64_t>(default_of(name)) : elements.front();
}
double Record::number(cudnnBackendAttributeName_t name) const {
  const auto elements = numbers(name);
  return elements.empty() ? default_of(name) : elements.front();
}
const Record& Record::record(cudnnBackendAttributeName_t name) const {
  return *first<RecordRef>(*this, name);
}
const RecordRef& Record::reference(cudnnBackendAttributeName_t name) const {
  return first<RecordRef>(*this, name);
}
void* Record::pointer(cudnnBackendAttributeName_t name) const { return first<void*>(*this, name); }
const std::string& Record::text(cudnnBackendAttributeName_t name) const {
  const auto* characters = find<std::string>(*this, name);
  if (characters == nullptr) fail_not_set(name);
  return *characters;
}

std::int64_t Record::integer_or(cudnnBackendAttributeName_t name, std::int64_t fallback) const {
  const auto elements = integers(name);
  return elements.empty() ? fallback : elements.front();
}
double Record::number_or(cudnnBackendAttributeName_t name, double fallback) const {
  const auto elements = numbers(name);
  return elements.empty() ? fallback : elements.front();
}
const Record* Record::record_or_null(cudnnBackendAttributeName_t name) const {
  const auto elements = records(name);
  return elements.empty() ? nullptr : elements.front().get();
}

std::span<const std::int64_t> Record::integers(cudnnBackendAttributeName_t name) const {
  return all<std::int64_t>(*this, name);
}
std::span<const double> Record::numbers(cudnnBackendAttributeName_t name) const {
  return all<double>(*this, name);
}
std::span<const RecordRef> Record::records(cudnnBackendAttributeName_t name) const {
  return all<RecordRef>(*this, name);
}
std::span<void* const> Record::pointers(cudnnBackendAttributeName_t name) const {
  return all<void*>(*this, name);
}
std::span<const cudnnFraction_t> Record::fractions(cudnnBackendAttributeName_t name) const {
  return all<cudnnFraction_t>(*this, name);
}

}  // namespace ashlar::cudnn
