// C API: kernel bundles.
#include <ashlar/bundle.hpp>
#include <cerrno>
#include <cstdio>

#include "api/c_api.hpp"

struct ashlar_bundle {
  ashlar::BundleContents contents;
};
struct ashlar_bundle_builder {
  ashlar::BundleBuilder builder;
};

namespace ashlar::capi {

namespace {

// Leaves no incomplete file behind.
void write_whole_file(const char* path, std::string_view bytes) {
  std::FILE* file = std::fopen(path, "wb");
  if (!file) fail(ErrorCode::io, "file '{}' could not be written: {}", path, std::strerror(errno));
  bool complete = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int error = errno;
  if (std::fclose(file) != 0 && complete) {
    complete = false;
    error = errno;
  }
  if (complete) return;
  std::remove(path);
  fail(ErrorCode::io, "file '{}' could not be written: {}", path, std::strerror(error));
}

}  // namespace

}  // namespace ashlar::capi

using namespace ashlar;
using namespace ashlar::capi;

extern "C" {

ashlar_status ashlar_bundle_read(const char* path, ashlar_bundle** bundle) {
  return guard([&] {
    ashlar_bundle*& result = require(bundle, "bundle");
    result = new ashlar_bundle{read_bundle(std::string(require_text(path, "path")))};
  });
}

void ashlar_bundle_destroy(ashlar_bundle* bundle) { delete bundle; }

void ashlar_bundle_info_init(ashlar_bundle_info* info) { init_sized(info); }

ashlar_status ashlar_bundle_get_info(const ashlar_bundle* bundle, ashlar_bundle_info* info) {
  return guard([&] {
    const BundleContents& source = require(bundle, "bundle").contents;
    ashlar_bundle_info result;
    init_sized(&result);
    result.architecture = source.architecture.c_str();
    result.version = source.version.c_str();
    result.file_bytes = source.file_bytes;
    result.kernels = static_cast<int32_t>(source.kernels.size());
    write_sized(require(info, "info"), result);
  });
}

ashlar_status ashlar_bundle_kernel(const ashlar_bundle* bundle, int32_t index, const char** name,
                                   int64_t* bytes) {
  return guard([&] {
    const BundleContents::Kernel& kernel =
        row_at(require(bundle, "bundle").contents.kernels, index);
    const char*& found = require(name, "name");
    require(bytes, "bytes") = kernel.bytes;
    found = kernel.name.c_str();
  });
}

ashlar_status ashlar_bundle_builder_create(const char* architecture,
                                           ashlar_bundle_builder** builder) {
  return guard([&] {
    ashlar_bundle_builder*& result = require(builder, "builder");
    const std::string name(require_text(architecture, "architecture"));
    result = new ashlar_bundle_builder{BundleBuilder(name)};
  });
}

ashlar_status ashlar_bundle_builder_create_for_device(const char* device,
                                                      ashlar_bundle_builder** builder) {
  return guard([&] {
    ashlar_bundle_builder*& result = require(builder, "builder");
    result = new ashlar_bundle_builder{BundleBuilder(device_from_c(device))};
  });
}

void ashlar_bundle_builder_destroy(ashlar_bundle_builder* builder) { delete builder; }

ashlar_status ashlar_bundle_builder_add(ashlar_bundle_builder* builder, const ashlar_graph* graph,
                                        const ashlar_compile_options* options) {
  return guard([&] {
    BundleBuilder& target = require(builder, "builder").builder;
    target.add(require(graph, "graph").graph, request_from_c(options).options);
  });
}

ashlar_status ashlar_bundle_builder_architecture(const ashlar_bundle_builder* builder,
                                                 const char** architecture) {
  return guard([&] {
    const BundleBuilder& source = require(builder, "builder").builder;
    require(architecture, "architecture") = source.architecture().c_str();
  });
}

ashlar_status ashlar_bundle_builder_kernel_count(const ashlar_bundle_builder* builder,
                                                 int32_t* count) {
  return guard([&] {
    const BundleBuilder& source = require(builder, "builder").builder;
    require(count, "count") = source.kernel_count();
  });
}

ashlar_status ashlar_bundle_builder_regions_without_kernel(const ashlar_bundle_builder* builder,
                                                           int32_t* count) {
  return guard([&] {
    const BundleBuilder& source = require(builder, "builder").builder;
    require(count, "count") = source.regions_without_kernel();
  });
}

ashlar_status ashlar_bundle_builder_write(const ashlar_bundle_builder* builder, const char* path,
                                          ashlar_bundle_progress progress, void* context) {
  return guard([&] {
    const BundleBuilder& source = require(builder, "builder").builder;
    const std::string_view name = require_text(path, "path");
    std::function<void(int, int)> report;
    if (progress) report = [=](int done, int all) { progress(done, all, context); };
    write_whole_file(name.data(), source.build(report));
  });
}

}  // extern "C"
