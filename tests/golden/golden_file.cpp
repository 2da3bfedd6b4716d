// Reading of golden cases.
#include "golden/golden_file.hpp"

#include <algorithm>
#include <ashlar/check.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace ashlar::golden {

namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path folder() {
  return std::filesystem::path(ASHLAR_SOURCE_DIR) / "tests/golden/data";
}

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw std::runtime_error("not a number: " + text);
}

}  // namespace

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

File load(const std::string& name) {
  std::ifstream stream(folder() / (name + ".json"));
  if (!stream) throw std::runtime_error("cannot open golden case " + name);
  const Json json = Json::parse(stream);
  File file{Graph::from_json(json.at("graph").dump()), {}, {}};
  file.bound = file.graph.bound_tensors();
  for (TensorId id : file.bound) {
    const Tensor& tensor = file.graph.tensor(id);
    const Json& list =
        json.at(tensor.kind == TensorKind::output ? "outputs" : "inputs").at(tensor.name);
    std::vector<double>& values = file.values.emplace_back();
    for (const Json& element : list) values.push_back(number(element));
    if (static_cast<std::int64_t>(values.size()) != number_count(tensor))
      throw std::runtime_error(name + ": wrong number of values for " + tensor.name);
  }
  if (file.bound.size() != json.at("inputs").size() + json.at("outputs").size())
    throw std::runtime_error(name + ": values for a tensor that the graph does not bind");
  return file;
}

Memory::Memory(const File& file) {
  constexpr std::byte kUnwritten{0x5a};
  for (std::size_t i = 0; i < file.bound.size(); ++i) {
    const Tensor& tensor = file.graph.tensor(file.bound[i]);
    auto& block = blocks_.emplace_back(static_cast<std::size_t>(byte_size(tensor)), kUnwritten);
    if (tensor.kind == TensorKind::output) continue;
    for (std::size_t element = 0; element < file.values[i].size(); ++element)
      write_element(tensor, block.data(), static_cast<std::int64_t>(element),
                    file.values[i][element]);
  }
}

std::vector<const void*> Memory::readable() const {
  std::vector<const void*> pointers;
  for (const auto& block : blocks_) pointers.push_back(block.data());
  return pointers;
}

std::vector<void*> Memory::writable() {
  std::vector<void*> pointers;
  for (auto& block : blocks_) pointers.push_back(block.data());
  return pointers;
}

}  // namespace ashlar::golden
