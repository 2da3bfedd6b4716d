#include "backend/descriptor.hpp"

#include <shared_mutex>

#include "backend/attribute_table.hpp"
#include "backend/finalize.hpp"
#include "core/guarded.hpp"
#include "core/objects.hpp"

namespace ashlar::cudnn {

namespace {

// Locked shared while a descriptor is looked up, exclusively while one is destroyed.
std::shared_mutex& lookup_mutex() {
  static std::shared_mutex& mutex = *new std::shared_mutex;  // outlives static destructors
  return mutex;
}

}  // namespace

std::shared_ptr<Contents> contents_of(cudnnBackendDescriptor_t descriptor, const char* parameter) {
  const std::shared_lock lock(lookup_mutex());
  return object(static_cast<Descriptor*>(descriptor), parameter).contents;
}

RecordRef finalized(cudnnBackendDescriptor_t descriptor, const char* parameter) {
  const std::shared_ptr<Contents> contents = contents_of(descriptor, parameter);
  const std::scoped_lock lock(contents->mutex);
  if (contents->record == nullptr)
    fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
         "{}: got a {} that is not finalized, expected a finalized one", parameter,
         descriptor_type_name(contents->draft.type));
  return contents->record;
}

RecordRef finalized(cudnnBackendDescriptor_t descriptor, cudnnBackendDescriptorType_t type,
                    const char* parameter) {
  RecordRef record = finalized(descriptor, parameter);
  if (record->type != type)
    fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "{}: got a {}, expected a {}", parameter,
         descriptor_type_name(record->type), descriptor_type_name(type));
  return record;
}

}  // namespace ashlar::cudnn

using namespace ashlar::cudnn;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  return guarded(__func__, [&] {
    required(descriptor, "descriptor");
    const std::int64_t number = number_of(type);
    if (!is_descriptor_type(number))
      fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
           "type: got {}, expected a cudnnBackendDescriptorType_t", number);
    auto contents = std::make_shared<Contents>();
    contents->draft.type = type;
    Descriptor* created = nullptr;
    create_object(&created, "descriptor", std::move(contents));
    *descriptor = created;
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return guarded(__func__, [&] {
    std::shared_ptr<Contents> contents;  // released outside the lock: it may own a plan
    if (descriptor == nullptr) return;
    contents = contents_of(descriptor, "descriptor");
    const std::scoped_lock lock(lookup_mutex());
    destroy_object(static_cast<Descriptor*>(descriptor), "descriptor");
  });
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return guarded(__func__, [&] {
    const std::shared_ptr<Contents> contents = contents_of(descriptor, "descriptor");
    const std::scoped_lock lock(contents->mutex);
    contents->draft.attributes.clear();
    contents->record = nullptr;
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded(__func__, [&] {
    const std::shared_ptr<Contents> contents = contents_of(descriptor, "descriptor");
    const std::scoped_lock lock(contents->mutex);
    if (contents->record != nullptr)
      fail(CUDNN_STATUS_BAD_PARAM,
           "descriptor: got a {} that is finalized already, expected one that is not",
           descriptor_type_name(contents->record->type));
    FinishedRef finished = finalize(contents->draft);
    Record& draft = contents->draft;
    contents->record = std::make_shared<const Record>(
        Record{draft.type, std::move(draft.attributes), std::move(finished)});
    contents->draft.attributes.clear();
  });
}
