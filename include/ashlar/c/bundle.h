/* The C API: kernel bundles, ahead-of-time compiled kernels of plans in one file. */
#ifndef ASHLAR_C_BUNDLE_H
#define ASHLAR_C_BUNDLE_H

#include <ashlar/c/plan.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Reads and verifies every kernel. ASHLAR_IO for a file that is damaged or not a bundle. */
ashlar_status ashlar_bundle_read(const char* path, ashlar_bundle** bundle);
void ashlar_bundle_destroy(ashlar_bundle* bundle); /* null is ignored */

/* Strings here and below are owned by the bundle or builder. */
typedef struct ashlar_bundle_info {
  size_t size;
  const char* architecture; /* "sm_90a" */
  const char* version;      /* of Ashlar */
  int64_t file_bytes;
  int32_t kernels;
  int32_t reserved;
} ashlar_bundle_info;
void ashlar_bundle_info_init(ashlar_bundle_info* info);
ashlar_status ashlar_bundle_get_info(const ashlar_bundle* bundle, ashlar_bundle_info* info);
ashlar_status ashlar_bundle_kernel(const ashlar_bundle* bundle, int32_t index, const char** name,
                                   int64_t* bytes);

/* For all known GPUs of an architecture ("sm_90a", "sm_80"). */
ashlar_status ashlar_bundle_builder_create(const char* architecture,
                                           ashlar_bundle_builder** builder);
/* For one GPU model, which need not be present. */
ashlar_status ashlar_bundle_builder_create_for_device(const char* device,
                                                      ashlar_bundle_builder** builder);
void ashlar_bundle_builder_destroy(ashlar_bundle_builder* builder); /* null is ignored */

/* Adds the kernels that compiling the graph would use; with the option `tune`, all candidates. The
 * option `device` is ignored. */
ashlar_status ashlar_bundle_builder_add(ashlar_bundle_builder* builder, const ashlar_graph* graph,
                                        const ashlar_compile_options* options);
ashlar_status ashlar_bundle_builder_architecture(const ashlar_bundle_builder* builder,
                                                 const char** architecture);
/* Distinct kernels added so far. */
ashlar_status ashlar_bundle_builder_kernel_count(const ashlar_bundle_builder* builder,
                                                 int32_t* count);
/* Regions without a GPU kernel: they run on the CPU. */
ashlar_status ashlar_bundle_builder_regions_without_kernel(const ashlar_bundle_builder* builder,
                                                           int32_t* count);

typedef void (*ashlar_bundle_progress)(int32_t done, int32_t all, void* context);
/* Compiles all added kernels, on all CPU threads, and writes the file. ASHLAR_DEVICE if NVRTC is
 * not found. `progress` may be null; it is called by one thread at a time. */
ashlar_status ashlar_bundle_builder_write(const ashlar_bundle_builder* builder, const char* path,
                                          ashlar_bundle_progress progress, void* context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
