// Programmatic dependent launch (griddepcontrol, sm_90 on; LaunchDesign::is_dependent_launch).
#pragma once

// The dependent grid may start when all CTAs have called this or have exited; it uses the SM
// resources that are left.
__device__ inline void launch_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Waits until the grid that this one depends on has completed and its writes are visible.
__device__ inline void wait_on_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
