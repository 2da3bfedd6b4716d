#include "cudnn/replay/player.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "backend/descriptor.hpp"
#include "backend/element_type.hpp"
#include "backend/operations.hpp"

namespace ashlar::replay {

namespace {

using cudnn::element_size;

// Executions of one plan that are compared. The oracle is slow, so later ones are only run.
constexpr int kMaxComparisons = 2;

double number_of(const json& value) {
  if (value.is_string()) return std::stod(value.get<std::string>());
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return value.get<double>();
}

void put(std::vector<std::byte>& bytes, std::size_t index, const auto& value) {
  std::memcpy(bytes.data() + index * sizeof(value), &value, sizeof(value));
}

// The elements of a recorded call as the caller's array, except descriptors and handles.
std::vector<std::byte> elements_of(int type, const json& values) {
  std::vector<std::byte> bytes(element_size(type) * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const json& value = values[i];
    switch (type) {
      case CUDNN_TYPE_FLOAT: put(bytes, i, static_cast<float>(number_of(value))); break;
      case CUDNN_TYPE_DOUBLE: put(bytes, i, number_of(value)); break;
      case CUDNN_TYPE_INT64: put(bytes, i, value.get<std::int64_t>()); break;
      case CUDNN_TYPE_BOOLEAN:
        put(bytes, i, value.is_boolean() ? value.get<bool>() : value.get<int>() != 0);
        break;
      case CUDNN_TYPE_FRACTION:
        put(bytes, i, cudnnFraction_t{value[0].get<std::int64_t>(), value[1].get<std::int64_t>()});
        break;
      default: put(bytes, i, value.get<std::int32_t>()); break;
    }
  }
  return bytes;
}

std::string last_error() {
  std::string text(1024, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  return text.c_str();
}

}  // namespace

Player::Player(const Recording& recording, const Device& device)
    : recording_(recording), device_(device) {
  for (const json& call : recording.calls)
    if (call.at("f") == "execute") runs_[call.at("pack")] = &call;
  if (cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS) outcome_.failures.push_back(last_error());
}

Player::~Player() {
  for (const auto& [id, descriptor] : descriptors_) cudnnBackendDestroyDescriptor(descriptor);
  cudnnDestroy(handle_);
}

cudnnBackendDescriptor_t Player::descriptor(const json& id) const {
  const auto found = descriptors_.find(id.get<std::int64_t>());
  return found == descriptors_.end() ? nullptr : found->second;
}

bool Player::expect(const json& call, cudnnStatus_t status) {
  ++outcome_.calls;
  const int recorded = call.value("st", 0);
  if (status == CUDNN_STATUS_SUCCESS || status == recorded) return true;
  std::string shown = call.dump();
  if (shown.size() > 200) shown = shown.substr(0, 200) + "...";
  outcome_.failures.push_back(fmt::format("line {}: {}: returned {}: {}", position_ + 1, shown,
                                          static_cast<int>(status), last_error()));
  return false;
}

// Stops at a plan that was refused: there is nothing to execute.
Outcome Player::play() try {
  for (position_ = 0; position_ < recording_.calls.size(); ++position_) {
    const json& call = recording_.calls[position_];
    const std::string& function = call.at("f").get_ref<const std::string&>();
    if (function == "create") create(call);
    if (function == "set") set(call);
    if (function == "get") get(call);
    if (function == "finalize") finalize(call);
    if (function == "destroy") destroy(call);
    if (function == "execute") execute(call);
    if (outcome_.failures.size() > 5) break;
  }
  return outcome_;
} catch (const cudnn::Failure& failure) {
  outcome_.failures.push_back(fmt::format("line {}: {}", position_ + 1, failure.what()));
  return outcome_;
}

void Player::create(const json& call) {
  cudnnBackendDescriptor_t created = nullptr;
  const auto type = static_cast<cudnnBackendDescriptorType_t>(call.at("t").get<int>());
  if (expect(call, cudnnBackendCreateDescriptor(type, &created)))
    descriptors_[call.at("d")] = created;
}

void Player::set(const json& call) {
  const auto attribute = static_cast<cudnnBackendAttributeName_t>(call.at("a").get<int>());
  const auto type = static_cast<cudnnBackendAttributeType_t>(call.at("y").get<int>());
  const cudnnBackendDescriptor_t target = descriptor(call.at("d"));
  const json& values = call.at("v");
  auto count = call.at("n").get<std::int64_t>();
  std::vector<void*> pointers;
  std::vector<std::byte> bytes;
  const void* elements = nullptr;
  switch (type) {
    case CUDNN_TYPE_VOID_PTR: return set_pack(call);
    case CUDNN_TYPE_HANDLE:
      pointers.assign(values.size(), handle_);
      elements = pointers.data();
      break;
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      for (const json& id : values) pointers.push_back(descriptor(id));
      elements = pointers.data();
      break;
    case CUDNN_TYPE_CHAR: {  // the recorded text is that of NVIDIA's library
      const std::string& text = texts_[attribute];
      count = static_cast<std::int64_t>(text.size());
      elements = text.data();
      break;
    }
    default: bytes = elements_of(type, values); elements = bytes.data();
  }
  expect(call, cudnnBackendSetAttribute(target, attribute, type, count, elements));
}

// Allocates memory for the pointers of a variant pack, for the plan that it will be run with.
void Player::set_pack(const json& call) {
  const std::int64_t pack = call.at("d");
  const auto attribute = static_cast<cudnnBackendAttributeName_t>(call.at("a").get<int>());
  std::vector<void*> pointers(call.at("v").size(), this);  // anything but null
  if (const auto run = runs_.find(pack); run != runs_.end()) {
    auto& execution = executions_[pack];
    const std::int64_t plan_id = run->second->at("plan");
    // Executions that are not compared reuse the buffers of the last one that was.
    if (compared_[plan_id] >= kMaxComparisons) execution = last_[plan_id];
    if (execution == nullptr) {
      const auto record = cudnn::finalized(descriptor(run->second->at("plan")),
                                           CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
      const auto& plan = cudnn::finished<cudnn::ExecutionPlan>(*record);
      const auto configs = plan.computed(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).value();
      const auto& config = std::get<std::vector<cudnn::RecordRef>>(configs).front();
      const auto& graph = cudnn::finished<cudnn::EngineConfig>(*config).engine().operation_graph();
      std::vector<const cudnn::Record*> tensors;
      for (const cudnn::RecordRef& operation : graph.operations)
        for (const auto& list : {cudnn::operands_of(*operation), cudnn::results_of(*operation)})
          for (const cudnn::NamedTensor& named : list) tensors.push_back(named.tensor);
      execution = std::make_shared<Execution>(plan.plan(), device_, run->second->at("by_value"),
                                              tensors, static_cast<std::uint64_t>(pack));
      last_[plan_id] = execution;
    }
    if (attribute == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
      pointers.assign(1, execution->workspace());
    } else {
      // The uids may be set before or after the pointers: find them in the recording.
      for (const json& other : recording_.calls)
        if (other.at("f") == "set" && other.at("d") == pack &&
            other.at("a") == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)
          for (std::size_t i = 0; i < pointers.size(); ++i)
            if (void* memory = execution->pointer(other.at("v")[i])) pointers[i] = memory;
    }
  }
  expect(call,
         cudnnBackendSetAttribute(descriptor(pack), attribute, CUDNN_TYPE_VOID_PTR,
                                  static_cast<std::int64_t>(pointers.size()), pointers.data()));
}

void Player::get(const json& call) {
  if (unfilled_.contains(call.at("d"))) return;
  const auto attribute = static_cast<cudnnBackendAttributeName_t>(call.at("a").get<int>());
  const auto type = static_cast<cudnnBackendAttributeType_t>(call.at("y").get<int>());
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return get_descriptors(call);
  const cudnnBackendDescriptor_t source = descriptor(call.at("d"));
  std::int64_t count = 0;
  if (type == CUDNN_TYPE_CHAR) {  // with the length of this library's text
    if (!expect(call, cudnnBackendGetAttribute(source, attribute, type, 0, &count, nullptr)))
      return;
    std::string text(static_cast<std::size_t>(count), '\0');
    expect(call, cudnnBackendGetAttribute(source, attribute, type, count, &count, text.data()));
    texts_[attribute] = std::move(text);
    return;
  }
  const auto capacity = call.at("req").get<std::int64_t>();
  std::vector<std::byte> room(element_size(type) * static_cast<std::size_t>(capacity) + 8);
  const bool has_count = !call.at("got").is_null();
  const cudnnStatus_t status =
      cudnnBackendGetAttribute(source, attribute, type, capacity, has_count ? &count : nullptr,
                               call.at("v").empty() ? nullptr : room.data());
  if (!expect(call, status) || status != CUDNN_STATUS_SUCCESS) return;
  // Notes differ between engines, but the recorded capacity is enough for all of them.
  if (capacity > 0 && count > capacity)
    outcome_.failures.push_back(fmt::format("line {}: got {} elements, expected at most {}",
                                            position_ + 1, count, capacity));
}

void Player::get_descriptors(const json& call) {
  const auto attribute = static_cast<cudnnBackendAttributeName_t>(call.at("a").get<int>());
  const cudnnBackendDescriptor_t source = descriptor(call.at("d"));
  const auto capacity = call.at("req").get<std::int64_t>();
  const json& filled = call.at("v");
  std::int64_t count = 0;
  if (capacity == 0 || filled.empty()) {
    expect(call, cudnnBackendGetAttribute(source, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                          &count, nullptr));
    return;
  }
  std::vector<cudnnBackendDescriptor_t> targets;
  for (const json& id : filled) targets.push_back(descriptor(id));
  if (!expect(call, cudnnBackendGetAttribute(source, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                             static_cast<std::int64_t>(targets.size()), &count,
                                             targets.data())))
    return;
  for (auto i = static_cast<std::size_t>(count); i < targets.size(); ++i) {
    // A program that uses more configurations than exist here gets the first one again.
    const bool is_list = attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS && count > 0;
    if (!is_list)
      unfilled_.insert(filled[i].get<std::int64_t>());
    else
      expect(call, cudnnBackendGetAttribute(source, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                            &count, &targets[i]));
  }
}

void Player::finalize(const json& call) {
  if (unfilled_.contains(call.at("d"))) return;
  expect(call, cudnnBackendFinalize(descriptor(call.at("d"))));
}

void Player::destroy(const json& call) {
  const auto found = descriptors_.find(call.at("d").get<std::int64_t>());
  if (found == descriptors_.end()) return;
  expect(call, cudnnBackendDestroyDescriptor(found->second));
  executions_.erase(found->first);
  descriptors_.erase(found);
}

void Player::execute(const json& call) {
  ++outcome_.executions;
  const std::int64_t plan = call.at("plan"), pack = call.at("pack");
  if (!expect(call, cudnnBackendExecute(handle_, descriptor(plan), descriptor(pack)))) return;
  const auto execution = executions_.find(pack);
  if (execution == executions_.end() || compared_[plan] >= kMaxComparisons) return;
  ++compared_[plan];
  ++outcome_.compared;
  const std::string wrong = execution->second->compare(outcome_.worst);
  if (!wrong.empty()) outcome_.failures.push_back(fmt::format("line {}: {}", position_ + 1, wrong));
}

}  // namespace ashlar::replay
