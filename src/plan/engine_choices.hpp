// What the engines of a device say about regions, asked once per kind of region: the layers of a
// network repeat.
#pragma once

#include <string>
#include <unordered_map>

#include "plan/select.hpp"

namespace ashlar {

class EngineChoices {
 public:
  // The arguments must outlive the choices.
  EngineChoices(EngineTable table, const DeviceProps& device, const CompileOptions& options)
      : table_(table), device_(device), options_(options) {}

  EngineTable table() const { return table_; }
  const DeviceProps& device() const { return device_; }
  const CompileOptions& options() const { return options_; }

  const Choice& select(const Region& region);
  bool has_specialised(const Region& region);          // an engine that is no last resort
  bool has_more_than_reference(const Region& region);  // one that is not the reference
  // Whether every engine that supports the region stores elements last (Engine::stores_last).
  bool all_store_last(const Region& region) const;

 private:
  struct Known {
    std::optional<Choice> choice;
    std::optional<bool> has_specialised, has_more_than_reference;
  };
  Known& known(const Region& region);
  bool has_engine(const Region& region, bool (*counts)(EngineKind)) const;

  EngineTable table_;
  const DeviceProps& device_;
  const CompileOptions& options_;
  std::unordered_map<std::string, Known> known_;
};

// Equal for regions that differ only in which tensors they read and write. Engines see nothing
// else.
std::string region_key(const Region& region);

}  // namespace ashlar
