// Tensors, parameters, operations and variant packs as real programs described them to NVIDIA's
// library: what that accepted is accepted here.
#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/element_type.hpp"

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

fs::path recordings() {
  const char* asked = std::getenv("ASHLAR_REPLAY");
  return asked != nullptr ? fs::path(asked) : fs::path(ASHLAR_SOURCE_DIR) / "../shared/replay";
}

std::string last_error() {
  std::string text(1024, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  return text.c_str();
}

// Those that engines and devices have no part in.
bool is_description(int type) {
  switch (type) {
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR:
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: return false;
    default: return true;
  }
}

class Replay {
 public:
  ~Replay() {
    for (const auto& [id, descriptor] : descriptors_) cudnnBackendDestroyDescriptor(descriptor);
  }

  // The status of the call, and what was recorded; both success for calls that are left out.
  std::pair<int, int> run(const json& call) {
    const std::string kind = call.at("f");
    const int recorded = call.value("st", 0);
    if (kind == "create" && is_description(call.at("t"))) {
      cudnnBackendDescriptor_t made = nullptr;
      const int status = cudnnBackendCreateDescriptor(
          static_cast<cudnnBackendDescriptorType_t>(call.at("t").get<int>()), &made);
      descriptors_[call.at("d")] = made;
      return {status, recorded};
    }
    if (!call.contains("d") || !descriptors_.contains(call.at("d"))) return {0, 0};
    const cudnnBackendDescriptor_t descriptor = descriptors_[call.at("d")];
    if (kind == "set") return {set(descriptor, call), recorded};
    if (kind == "finalize") return {cudnnBackendFinalize(descriptor), recorded};
    if (kind == "destroy") {
      descriptors_.erase(call.at("d").get<int>());
      return {cudnnBackendDestroyDescriptor(descriptor), recorded};
    }
    return {0, 0};
  }

 private:
  int set(cudnnBackendDescriptor_t descriptor, const json& call) {
    const auto type = static_cast<cudnnBackendAttributeType_t>(call.at("y").get<int>());
    std::vector<char> elements;
    const auto append = [&elements](auto value) {
      const char* bytes = reinterpret_cast<const char*>(&value);
      elements.insert(elements.end(), bytes, bytes + sizeof(value));
    };
    for (const json& value : call.at("v")) {
      switch (type) {
        case CUDNN_TYPE_BACKEND_DESCRIPTOR: append(descriptors_.at(value)); break;
        case CUDNN_TYPE_VOID_PTR: append(static_cast<void*>(nullptr)); break;
        case CUDNN_TYPE_FLOAT: append(value.get<float>()); break;
        case CUDNN_TYPE_DOUBLE: append(value.get<double>()); break;
        case CUDNN_TYPE_INT64: append(value.get<std::int64_t>()); break;
        case CUDNN_TYPE_BOOLEAN: append(value.is_boolean() ? value.get<bool>() : value != 0); break;
        case CUDNN_TYPE_FRACTION: append(cudnnFraction_t{value.at(0), value.at(1)}); break;
        default: append(value.get<std::int32_t>()); break;
      }
    }
    return cudnnBackendSetAttribute(
        descriptor, static_cast<cudnnBackendAttributeName_t>(call.at("a").get<int>()), type,
        call.at("n"), elements.empty() ? nullptr : elements.data());
  }

  std::map<int, cudnnBackendDescriptor_t> descriptors_;
};

TEST(CudnnRecordedDescriptors, AreAccepted) {
  if (!fs::is_directory(recordings())) GTEST_SKIP() << "no recordings at " << recordings();
  int files = 0;
  for (const auto& entry : fs::directory_iterator(recordings())) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    Replay replay;
    std::ifstream stream(entry.path());
    int line = 0;
    for (std::string text; std::getline(stream, text);) {
      ++line;
      const auto [status, recorded] = replay.run(json::parse(text));
      ASSERT_EQ(status, recorded) << entry.path().filename() << ":" << line << "\n"
                                  << text << "\n"
                                  << last_error();
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
