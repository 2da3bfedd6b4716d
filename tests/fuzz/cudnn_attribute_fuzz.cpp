// Fuzzes the attributes of libcudnn's backend descriptors: every call returns a status, and every
// failure sets a message.
//
// An input is text, one call a line, of words separated by spaces:
//   c TYPE                             creates the next descriptor (they count from 0)
//   s DESCRIPTOR NAME TYPE COUNT VALUES...   sets an attribute; fewer values than COUNT are zeros
//   t DESCRIPTOR NAME TEXT             sets an attribute of characters to the rest of the line
//   g DESCRIPTOR NAME TYPE CAPACITY    reads one
//   r DESCRIPTOR NAME PLACE...         reads descriptors into descriptors
//   f DESCRIPTOR, i DESCRIPTOR, d DESCRIPTOR   finalizes, initializes, destroys
// Values are numbers; of descriptors, their places; of pointers, 0 or anything else.
#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Target of the pointers of variant packs: not accessed before a plan runs.
char somewhere[16];

// Any number that an enumeration's type can hold, not only its values.
cudnnBackendDescriptorType_t descriptor_type(std::int64_t number) {
  return static_cast<cudnnBackendDescriptorType_t>(number & 63);
}
cudnnBackendAttributeName_t attribute_name(std::int64_t number) {
  return static_cast<cudnnBackendAttributeName_t>(number & 4095);
}
cudnnBackendAttributeType_t attribute_type(std::int64_t number) {
  return static_cast<cudnnBackendAttributeType_t>(number & 31);
}

class Calls {
 public:
  ~Calls() {
    for (const cudnnBackendDescriptor_t descriptor : descriptors_)
      cudnnBackendDestroyDescriptor(descriptor);
  }

  void run(std::istringstream& line) {
    std::string call;
    line >> call;
    if (call == "c") return create(number(line));
    const cudnnBackendDescriptor_t descriptor = place(number(line));
    if (call == "f") answered(cudnnBackendFinalize(descriptor));
    if (call == "i") answered(cudnnBackendInitialize(descriptor));
    if (call == "d") answered(cudnnBackendDestroyDescriptor(descriptor));
    if (call == "s") set(descriptor, line);
    if (call == "t") set_text(descriptor, line);
    if (call == "g") get(descriptor, line);
    if (call == "r") read(descriptor, line);
  }

 private:
  static constexpr std::int64_t kMaxElements = 64;

  static std::int64_t number(std::istringstream& line) {
    double value = 0;  // reads whole numbers too, and clamps what does not fit
    line >> value;
    if (!(value > -9e18)) return INT64_MIN;
    return value < 9e18 ? static_cast<std::int64_t>(value) : INT64_MAX;
  }

  cudnnBackendDescriptor_t place(std::int64_t index) const {
    if (index < 0 || index >= static_cast<std::int64_t>(descriptors_.size())) return nullptr;
    return descriptors_[static_cast<std::size_t>(index)];
  }

  static void answered(cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    char sentence[512] = {};
    cudnnGetLastErrorString(sentence, sizeof(sentence));
    if (std::strstr(sentence, ": ") == nullptr) throw std::logic_error("a failure says nothing");
    if (status >= CUDNN_STATUS_INTERNAL_ERROR && status < CUDNN_STATUS_EXECUTION_FAILED)
      throw std::logic_error(sentence);
  }

  void create(std::int64_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    answered(cudnnBackendCreateDescriptor(descriptor_type(type), &made));
    if (descriptors_.size() < 256)
      descriptors_.push_back(made);
    else
      cudnnBackendDestroyDescriptor(made);
  }

  template <class T>
  static void append(std::vector<char>& bytes, T value) {
    const char* first = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  }

  void set(cudnnBackendDescriptor_t descriptor, std::istringstream& line) {
    const cudnnBackendAttributeName_t name = attribute_name(number(line));
    const cudnnBackendAttributeType_t type = attribute_type(number(line));
    const std::int64_t count = number(line);
    // These point to memory of the program's own, which no library can check.
    if (name == CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES ||
        name == CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES)
      return;
    if (count > kMaxElements) return;  // the caller's array would end before
    std::vector<char> bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      double value = 0;
      line >> value;
      const std::int64_t whole =
          value > -9e18 && value < 9e18 ? static_cast<std::int64_t>(value) : INT64_MAX;
      switch (type) {
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: append(bytes, place(whole)); break;
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR:
          append(bytes, value != 0 ? static_cast<void*>(somewhere) : nullptr);
          break;
        case CUDNN_TYPE_FLOAT: append(bytes, static_cast<float>(value)); break;
        case CUDNN_TYPE_DOUBLE: append(bytes, value); break;
        case CUDNN_TYPE_INT64: append(bytes, whole); break;
        case CUDNN_TYPE_BOOLEAN:
        case CUDNN_TYPE_CHAR: append(bytes, static_cast<unsigned char>(whole)); break;
        case CUDNN_TYPE_FRACTION: append(bytes, cudnnFraction_t{whole, number(line)}); break;
        default: append(bytes, static_cast<std::int32_t>(whole)); break;
      }
    }
    answered(cudnnBackendSetAttribute(descriptor, name, type, count,
                                      bytes.empty() ? nullptr : bytes.data()));
  }

  static void set_text(cudnnBackendDescriptor_t descriptor, std::istringstream& line) {
    const cudnnBackendAttributeName_t name = attribute_name(number(line));
    std::string text;
    std::getline(line, text);
    answered(cudnnBackendSetAttribute(descriptor, name, CUDNN_TYPE_CHAR,
                                      static_cast<std::int64_t>(text.size()), text.data()));
  }

  void read(cudnnBackendDescriptor_t descriptor, std::istringstream& line) {
    const cudnnBackendAttributeName_t name = attribute_name(number(line));
    std::vector<cudnnBackendDescriptor_t> places;
    for (std::int64_t index = 0; line >> index && places.size() < kMaxElements;)
      places.push_back(place(index));
    answered(cudnnBackendGetAttribute(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      static_cast<std::int64_t>(places.size()), nullptr,
                                      places.data()));
  }

  void get(cudnnBackendDescriptor_t descriptor, std::istringstream& line) {
    const cudnnBackendAttributeName_t name = attribute_name(number(line));
    const cudnnBackendAttributeType_t type = attribute_type(number(line));
    std::int64_t capacity = number(line), count = 0;
    std::vector<char> room(16 * kMaxElements, 0);  // of any type; for descriptors, nulls
    if (capacity > kMaxElements) capacity = kMaxElements;
    answered(cudnnBackendGetAttribute(descriptor, name, type, capacity, &count, room.data()));
    if (count < 0) throw std::logic_error("a negative count");
  }

  std::vector<cudnnBackendDescriptor_t> descriptors_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  Calls calls;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    calls.run(words);
  }
  return 0;
}
