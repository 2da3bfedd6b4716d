// A descriptor of cuDNN's backend API.
#pragma once

#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "library.hpp"

namespace ashlar::bench::cudnn {

// Owned. Every call throws Refused if the library returns an error.
class Descriptor {
 public:
  Descriptor(const Library& library, DescriptorType type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : library_(other.library_), object_(std::exchange(other.object_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    library_ = other.library_;
    std::swap(object_, other.object_);
    return *this;
  }

  void* object() const { return object_; }

  void set(Attribute name, ValueType type, std::int64_t count, const void* elements);
  void set(Attribute name, std::int64_t value) { set(name, ValueType::int64, 1, &value); }
  void set(Attribute name, std::span<const std::int64_t> values) {
    set(name, ValueType::int64, std::ssize(values), values.data());
  }
  void set(Attribute name, double value) { set(name, ValueType::float64, 1, &value); }
  void set(Attribute name, float value) { set(name, ValueType::float32, 1, &value); }
  void set(Attribute name, bool value) { set(name, ValueType::boolean, 1, &value); }
  void set(Attribute name, DataType value) { set(name, ValueType::data_type, 1, &value); }
  // A value of one of cuDNN's enumerations.
  void set(Attribute name, ValueType type, int value) { set(name, type, 1, &value); }
  void set(Attribute name, Handle handle) { set(name, ValueType::handle, 1, &handle); }
  void set(Attribute name, void* pointer) { set(name, ValueType::pointer, 1, &pointer); }
  void set(Attribute name, std::span<void* const> pointers) {
    set(name, ValueType::pointer, std::ssize(pointers), pointers.data());
  }
  void set(Attribute name, const Descriptor& other) {
    set(name, ValueType::descriptor, 1, &other.object_);
  }
  void set(Attribute name, std::span<const Descriptor> others);
  void set(Attribute name, std::span<const Descriptor* const> others);

  void finalize();

  std::int64_t int64(Attribute name) const;
  // The values of an attribute that lists enumerators; empty if it cannot be read.
  std::vector<int> numbers(Attribute name, ValueType type, std::int64_t most) const;
  // The descriptors of an attribute that lists results: at most `most`.
  std::vector<Descriptor> descriptors(Attribute name, DescriptorType type, std::int64_t most) const;
  // The descriptor that an attribute holds.
  Descriptor descriptor(Attribute name, DescriptorType type) const;

 private:
  const Library* library_;
  void* object_ = nullptr;
};

}  // namespace ashlar::bench::cudnn
