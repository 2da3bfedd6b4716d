#include "cudnn/replay/recording.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "cudnn_graph.h"

namespace ashlar::replay {

namespace {

namespace fs = std::filesystem;

std::vector<json> read_lines(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<json> calls;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) calls.push_back(json::parse(line));
  return calls;
}

// The first plan that is executed but never created in this file; -1 if there is none.
std::int64_t missing_plan(const std::vector<json>& calls) {
  std::set<std::int64_t> created;
  for (const json& call : calls) {
    if (call.at("f") == "create") created.insert(call.at("d").get<std::int64_t>());
    if (call.at("f") == "execute" && !created.contains(call.at("plan").get<std::int64_t>()))
      return call.at("plan").get<std::int64_t>();
  }
  return -1;
}

// Prepends the calls of an earlier recording of the same process whose descriptors this one uses.
std::vector<json> with_earlier_recording(const fs::path& file, std::vector<json> calls) {
  const std::int64_t plan = missing_plan(calls);
  if (plan < 0) return calls;
  for (const fs::path& other : fs::directory_iterator(file.parent_path())) {
    if (other == file || other.extension() != ".jsonl") continue;
    std::vector<json> before = read_lines(other);
    const bool creates = std::any_of(before.begin(), before.end(), [&](const json& call) {
      return call.at("f") == "create" && call.at("d") == plan;
    });
    if (!creates) continue;
    std::erase_if(before, [](const json& call) { return call.at("f") == "execute"; });
    before.insert(before.end(), calls.begin(), calls.end());
    return before;
  }
  return calls;
}

// --- FLOP count, and its reduction

using Attributes = std::map<int, json>;

struct Shapes {
  std::map<std::int64_t, std::pair<int, Attributes>> descriptors;  // type and attributes by id
};

Shapes shapes_of(const std::vector<json>& calls) {
  Shapes shapes;
  for (const json& call : calls) {
    if (call.at("f") == "create") shapes.descriptors[call.at("d")].first = call.at("t").get<int>();
    if (call.at("f") == "set")
      shapes.descriptors[call.at("d")].second[call.at("a").get<int>()] = call.at("v");
  }
  return shapes;
}

double product(const json& dims) {
  double all = 1;
  for (const json& extent : dims) all *= extent.get<double>();
  return all;
}

// The FLOPs of the largest operation of the recording; a multiply-add counts as two.
double flops_of(const std::vector<json>& calls) {
  const Shapes shapes = shapes_of(calls);
  const auto dims = [&](const Attributes& operation, int attribute) {
    return shapes.descriptors.at(operation.at(attribute)[0].get<std::int64_t>())
        .second.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
  };
  double maximum = 0;
  for (const auto& [id, descriptor] : shapes.descriptors) {
    const auto& [type, operation] = descriptor;
    const auto conv = [&](int y, int w) {
      const json filter = dims(operation, w);
      return 2 * product(dims(operation, y)) * product(filter) / filter[0].get<double>();
    };
    switch (type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        maximum = std::max(
            maximum, 2 * product(dims(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC)) *
                         dims(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC).back().get<double>());
        break;
      case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR: {
        const json k = dims(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
        maximum =
            std::max(maximum, 4 * product(dims(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC)) *
                                  k[2].get<double>());
        break;
      }
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        maximum = std::max(maximum, conv(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        maximum = std::max(maximum, conv(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        maximum = std::max(maximum, conv(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
        break;
      case CUDNN_BACKEND_TENSOR_DESCRIPTOR:  // 16 FLOPs per element
        maximum = std::max(maximum, 16 * product(operation.at(CUDNN_ATTR_TENSOR_DIMENSIONS)));
        break;
      default: break;
    }
  }
  return maximum;
}

bool has_products(const Shapes& shapes) {
  return std::any_of(shapes.descriptors.begin(), shapes.descriptors.end(), [](const auto& entry) {
    const int type = entry.second.first;
    return type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
           type == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  });
}

std::set<std::int64_t> filters_of(const Shapes& shapes) {
  std::set<std::int64_t> filters;
  for (const auto& [id, descriptor] : shapes.descriptors)
    for (const int attribute :
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW})
      if (const auto found = descriptor.second.find(attribute); found != descriptor.second.end())
        filters.insert(found->second[0].get<std::int64_t>());
  return filters;
}

// The divisor of the channels: filters decide, because the group count follows from them.
std::int64_t channel_divisor(const Shapes& shapes, const std::set<std::int64_t>& filters,
                             std::int64_t divisor) {
  for (const std::int64_t id : filters) {
    const json& dims = shapes.descriptors.at(id).second.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
    for (const int axis : {0, 1})
      while (divisor > 1 && dims[axis] != 1 &&
             (dims[axis].get<std::int64_t>() % divisor != 0 ||
              dims[axis].get<std::int64_t>() / divisor < 4))
        divisor /= 2;
  }
  return divisor;
}

// Divides extents: for matmuls and attention every extent >= 256; otherwise the batch, and with
// convolutions the channels. Strides keep their order and padding.
void reduce(std::vector<json>& calls, std::int64_t divisor) {
  const Shapes shapes = shapes_of(calls);
  const bool has_batches = !has_products(shapes);
  const std::set<std::int64_t> filters = filters_of(shapes);
  const std::int64_t of_channels =
      channel_divisor(shapes, filters, std::max<std::int64_t>(1, divisor / 4));
  const auto reduced = [&](std::int64_t id, std::size_t axis, std::int64_t extent) {
    if (has_batches) {
      const bool is_batch = axis == 0 && !filters.contains(id);
      const std::int64_t of_axis = is_batch                      ? divisor
                                   : axis > 1 || filters.empty() ? 1
                                                                 : of_channels;
      return std::max<std::int64_t>(1, extent / of_axis);
    }
    return extent >= 256 ? std::max<std::int64_t>(extent / divisor, 2) : extent;
  };
  for (json& call : calls) {
    if (call.at("f") != "set") continue;
    const int attribute = call.at("a").get<int>();
    if (attribute != CUDNN_ATTR_TENSOR_DIMENSIONS && attribute != CUDNN_ATTR_TENSOR_STRIDES)
      continue;
    const std::int64_t id = call.at("d");
    const json& dims = shapes.descriptors.at(id).second.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const json& strides = shapes.descriptors.at(id).second.at(CUDNN_ATTR_TENSOR_STRIDES);
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (attribute == CUDNN_ATTR_TENSOR_DIMENSIONS) {
        call["v"][axis] = reduced(id, axis, dims[axis].get<std::int64_t>());
        continue;
      }
      double stride = strides[axis].get<double>();
      for (std::size_t inner = 0; inner < dims.size(); ++inner)
        if (inner != axis && strides[inner].get<double>() < strides[axis].get<double>())
          stride *= static_cast<double>(reduced(id, inner, dims[inner].get<std::int64_t>())) /
                    dims[inner].get<double>();
      call["v"][axis] = std::max<std::int64_t>(1, static_cast<std::int64_t>(stride + 0.5));
    }
  }
}

}  // namespace

Recording read_recording(const fs::path& file, double max_flops) {
  const std::vector<json> recorded = with_earlier_recording(file, read_lines(file));
  Recording recording{file.stem().string(), recorded, 1};
  while (flops_of(recording.calls) > max_flops && recording.divisor < 4096) {
    recording.divisor *= 2;
    std::vector<json> smaller = recorded;
    reduce(smaller, recording.divisor);
    if (smaller == recording.calls && recording.divisor > 256) break;  // nothing left to divide
    recording.calls = std::move(smaller);
  }
  return recording;
}

std::vector<fs::path> recordings() {
  const fs::path source = ASHLAR_SOURCE_DIR;
  const char* requested = std::getenv("ASHLAR_REPLAY");
  fs::path folder =
      requested != nullptr ? fs::path(requested) : source.parent_path() / "shared" / "replay";
  if (requested == nullptr && !fs::is_directory(folder))
    folder = source / "tests" / "data" / "replay";
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::path& file : fs::directory_iterator(folder, error))
    if (file.extension() == ".jsonl") files.push_back(file);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace ashlar::replay
