// Replays a recording against this library.
#pragma once

#include <cudnn_graph.h>

#include <ashlar/device.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cudnn/replay/execution.hpp"
#include "cudnn/replay/recording.hpp"

namespace ashlar::replay {

struct Outcome {
  int calls = 0, executions = 0, compared = 0;
  double worst = 0;  // error over bound
  std::vector<std::string> failures;
};

class Player {
 public:
  Player(const Recording& recording, const Device& device);
  ~Player();
  Outcome play();

 private:
  void create(const json& call);
  void set(const json& call);
  void get(const json& call);
  void finalize(const json& call);
  void destroy(const json& call);
  void execute(const json& call);
  void set_pack(const json& call);
  void get_descriptors(const json& call);
  // Whether the call returned the recorded status. A call that failed with NVIDIA's library may
  // succeed here.
  bool expect(const json& call, cudnnStatus_t status);
  cudnnBackendDescriptor_t descriptor(const json& id) const;

  const Recording& recording_;
  const Device& device_;
  cudnnHandle_t handle_ = nullptr;
  std::map<std::int64_t, cudnnBackendDescriptor_t> descriptors_;
  // Descriptors that NVIDIA's library filled and this one did not: calls on them are skipped.
  std::set<std::int64_t> unfilled_;
  std::map<int, std::string> texts_;          // JSON text of this library, by attribute
  std::map<std::int64_t, const json*> runs_;  // the execute call of a variant pack
  std::map<std::int64_t, std::shared_ptr<Execution>> executions_;  // by variant pack
  std::map<std::int64_t, std::shared_ptr<Execution>> last_;        // by plan
  std::map<std::int64_t, int> compared_;  // how often the results of a plan were compared
  std::size_t position_ = 0;
  Outcome outcome_;
};

}  // namespace ashlar::replay
