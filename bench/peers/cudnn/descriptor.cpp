#include "descriptor.hpp"

#include <algorithm>

namespace ashlar::bench::cudnn {

Descriptor::Descriptor(const Library& library, DescriptorType type) : library_(&library) {
  library.check(library.call().create_descriptor(type, &object_), "creating a descriptor");
}

Descriptor::~Descriptor() {
  if (object_) library_->call().destroy_descriptor(object_);
}

void Descriptor::set(Attribute name, ValueType type, std::int64_t count, const void* elements) {
  library_->check(library_->call().set_attribute(object_, name, type, count, elements),
                  "setting an attribute");
}

void Descriptor::set(Attribute name, std::span<const Descriptor> others) {
  std::vector<void*> objects;
  for (const Descriptor& other : others) objects.push_back(other.object_);
  set(name, ValueType::descriptor, std::ssize(objects), objects.data());
}

void Descriptor::set(Attribute name, std::span<const Descriptor* const> others) {
  std::vector<void*> objects;
  for (const Descriptor* other : others) objects.push_back(other->object_);
  set(name, ValueType::descriptor, std::ssize(objects), objects.data());
}

void Descriptor::finalize() {
  library_->check(library_->call().finalize(object_), "not supported");
}

std::int64_t Descriptor::int64(Attribute name) const {
  std::int64_t value = 0, count = 0;
  library_->check(
      library_->call().get_attribute(object_, name, ValueType::int64, 1, &count, &value),
      "reading an attribute");
  return value;
}

std::vector<int> Descriptor::numbers(Attribute name, ValueType type, std::int64_t most) const {
  std::vector<int> values(static_cast<std::size_t>(most));
  std::int64_t count = 0;
  if (library_->call().get_attribute(object_, name, type, most, &count, values.data()) != 0)
    count = 0;
  values.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, most)));
  return values;
}

std::vector<Descriptor> Descriptor::descriptors(Attribute name, DescriptorType type,
                                                std::int64_t most) const {
  std::int64_t count = 0;
  library_->check(
      library_->call().get_attribute(object_, name, ValueType::descriptor, 0, &count, nullptr),
      "counting results");
  std::vector<Descriptor> results;
  std::vector<void*> objects;
  for (std::int64_t i = 0; i < std::min(count, most); ++i) {
    results.emplace_back(*library_, type);
    objects.push_back(results.back().object_);
  }
  if (objects.empty()) return results;
  library_->check(library_->call().get_attribute(object_, name, ValueType::descriptor,
                                                 std::ssize(objects), &count, objects.data()),
                  "reading results");
  results.erase(results.begin() + std::min(count, std::ssize(results)), results.end());
  return results;
}

Descriptor Descriptor::descriptor(Attribute name, DescriptorType type) const {
  Descriptor result(*library_, type);
  std::int64_t count = 0;
  library_->check(library_->call().get_attribute(object_, name, ValueType::descriptor, 1, &count,
                                                 &result.object_),
                  "reading a result");
  return result;
}

}  // namespace ashlar::bench::cudnn
