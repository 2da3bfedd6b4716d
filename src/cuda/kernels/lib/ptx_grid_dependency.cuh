// A launch that starts before the one before it is done (sm_90 on; LaunchDesign::is_dependent_launch).
#pragma once

// The next launch may start when all blocks have come here or are done; its blocks take what room
// is left.
__device__ inline void launch_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Until the launch before is done and what it wrote can be read.
__device__ inline void wait_on_dependent_grids() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
