#include "backend/record_json.hpp"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/attribute_value.hpp"
#include "backend/finalize.hpp"

namespace ashlar::cudnn {

namespace {

using nlohmann::json;

// Writes records in topological order; a reference is the index of a record.
class Writer {
 public:
  std::size_t place_of(const RecordRef& record) {
    if (const auto known = positions_.find(record.get()); known != positions_.end())
      return known->second;
    json attributes = json::object();
    for (const auto& [name, value] : record->attributes)
      if (json written = std::visit([&](const auto& all) { return write(all); }, value);
          !written.is_null())
        attributes[std::to_string(static_cast<int>(name))] = std::move(written);
    list_.push_back(
        {{"type", static_cast<int>(record->type)}, {"attributes", std::move(attributes)}});
    positions_.emplace(record.get(), list_.size() - 1);
    return list_.size() - 1;
  }
  json take() { return std::move(list_); }

 private:
  static json write(const std::vector<std::int64_t>& all) { return {{"integers", all}}; }
  static json write(const std::vector<double>& all) {
    json texts = json::array();  // as text: JSON has no infinity
    for (const double number : all) texts.push_back(fmt::format("{}", number));
    return {{"numbers", std::move(texts)}};
  }
  json write(const std::vector<RecordRef>& all) {
    json positions = json::array();
    for (const RecordRef& record : all) positions.push_back(place_of(record));
    return {{"records", std::move(positions)}};
  }
  static json write(const std::vector<void*>&) { return nullptr; }
  static json write(const std::vector<cudnnFraction_t>& all) {
    json pairs = json::array();
    for (const cudnnFraction_t& fraction : all)
      pairs.push_back({fraction.numerator, fraction.denominator});
    return {{"fractions", std::move(pairs)}};
  }
  static json write(const std::string& text) { return {{"text", text}}; }

  json list_ = json::array();
  std::map<const Record*, std::size_t> positions_;
};

AttributeValue read_value(const json& text, const std::vector<RecordRef>& known) {
  if (text.contains("integers")) return text.at("integers").get<std::vector<std::int64_t>>();
  if (text.contains("numbers")) {
    std::vector<double> numbers;
    for (const json& number : text.at("numbers"))
      numbers.push_back(std::stod(number.get<std::string>()));
    return numbers;
  }
  if (text.contains("records")) {
    std::vector<RecordRef> records;
    for (const json& index : text.at("records"))
      records.push_back(known.at(index.get<std::size_t>()));
    return records;
  }
  if (text.contains("fractions")) {
    std::vector<cudnnFraction_t> fractions;
    for (const json& pair : text.at("fractions"))
      fractions.push_back({pair.at(0).get<std::int64_t>(), pair.at(1).get<std::int64_t>()});
    return fractions;
  }
  return text.at("text").get<std::string>();
}

}  // namespace

std::string record_to_json(const RecordRef& record) {
  Writer writer;
  writer.place_of(record);
  return writer.take().dump();
}

RecordRef record_from_json(const std::string& text) try {
  std::vector<RecordRef> known;
  for (const json& item : json::parse(text)) {
    auto record = std::make_shared<Record>();
    const std::int64_t type = item.at("type");
    if (!is_descriptor_type(type))
      fail(CUDNN_STATUS_BAD_PARAM,
           "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got descriptor type {}, expected a type "
           "of the graph API",
           type);
    record->type = static_cast<cudnnBackendDescriptorType_t>(type);
    for (const auto& [name, text_value] : item.at("attributes").items()) {
      const AttributeRow& row = attribute_of(record->type, std::stoi(name));
      AttributeValue value = read_value(text_value, known);
      check_value(row, value);
      record->attributes[row.name] = std::move(value);
    }
    record->finished = finalize(*record);
    known.push_back(std::move(record));
  }
  return known.at(known.size() - 1);
} catch (const json::exception& error) {
  fail(CUDNN_STATUS_BAD_PARAM,
       "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got text that is no plan: {}", error.what());
} catch (const std::logic_error& error) {  // malformed numbers and indices out of range
  fail(CUDNN_STATUS_BAD_PARAM,
       "CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: got text that is no plan: {}", error.what());
}

}  // namespace ashlar::cudnn
