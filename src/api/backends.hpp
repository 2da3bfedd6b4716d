// The backend of each kind of device. Only src/api knows both; the planner gets one passed in.
#pragma once

#include "plan/plan_data.hpp"

namespace ashlar {

const Backend& backend_for(DeviceKind kind);

// build_plan with the backend of the device.
std::shared_ptr<const PlanData> build_plan(const Graph& graph, const DeviceProps& device,
                                           const CompileOptions& options,
                                           const std::vector<SavedChoice>* saved,
                                           bool build_kernels);

}  // namespace ashlar
