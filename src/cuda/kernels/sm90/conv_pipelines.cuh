// Pipelines of the convolution mainloops that keep a window of pixels in shared memory for all taps
// (sm90/mainloop_halo.cuh, sm90/mainloop_groups.cuh): stages of filters, kFilterBytes each, and
// windows. In shared memory: windows, filters, epilogue staging buffers, barriers. Requires
// sm90/warpgroups.cuh and the generated header (kStages of filters, kWindowStages).
template <int kFilterBytes>
struct ConvPipelines {
  BufferPipeline<kStages, kFilterBytes> filter;
  BufferPipeline<kWindowStages, kStageBytesA> window;
  uint8* staging_buffers;
  Mbarrier* order;  // of each consumer warpgroup, in the ping-pong schedule

  __device__ explicit ConvPipelines(uint8* memory) {
    uint8* filters = memory + kWindowStages * kStageBytesA;
    staging_buffers = filters + kStages * kFilterBytes;
    filter.begin(filters, (Mbarrier*)(staging_buffers + kConsumers * 4 * kStagingBytes));
    window.begin(memory, filter.empty + kStages);
    order = window.empty + kWindowStages;
  }
};
