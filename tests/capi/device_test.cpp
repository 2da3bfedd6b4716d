// Devices, device memory, copies and timing through the C API.
#include <ashlar/device.hpp>

#include "capi/handles.hpp"

namespace ashlar {

namespace {

TEST(CApiDevice, PropertiesEqualThoseOfCpp) {
  for (const std::string& name : Device::known_names()) {
    const DeviceProps expected = Device::named(name).props();
    ashlar_device_props props;
    ashlar_device_props_init(&props);
    ASSERT_OK(ashlar_device_get_props(name.c_str(), &props));
    EXPECT_EQ(props.kind == ASHLAR_CUDA, expected.kind == DeviceKind::cuda);
    EXPECT_EQ(props.present != 0, expected.present);
    EXPECT_EQ(props.compute_units, expected.compute_units);
    EXPECT_EQ(props.compute_capability, expected.compute_capability);
    EXPECT_EQ(props.shared_bytes, expected.shared_bytes);
    EXPECT_EQ(props.l2_bytes, expected.l2_bytes);
    EXPECT_EQ(props.flops_f16, expected.flops_f16);
    EXPECT_EQ(props.bytes_per_second, expected.bytes_per_second);
    EXPECT_EQ(text_of(ashlar_device_description, name.c_str()), expected.description);
  }
  EXPECT_EQ(text_of(ashlar_device_current), Device::best().props().name);
}

TEST(CApiDevice, MemoryHoldsWhatIsCopied) {
  ashlar_memory* raw = nullptr;
  ASSERT_OK(ashlar_memory_create("cpu", 16, &raw));
  const MemoryHandle memory(raw);
  int64_t bytes = 0;
  EXPECT_OK(ashlar_memory_bytes(memory.get(), &bytes));
  EXPECT_EQ(bytes, 16);
  void* data = nullptr;
  EXPECT_OK(ashlar_memory_data(memory.get(), &data));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0u);
  EXPECT_OK(ashlar_memory_fill(memory.get(), 7));
  const char given[] = "abcdefgh";
  EXPECT_OK(ashlar_memory_upload(memory.get(), given, 8));
  char found[16] = {};
  EXPECT_OK(ashlar_memory_download(memory.get(), found, 16));
  EXPECT_EQ(std::string(found, 10), "abcdefgh\7\7");
  EXPECT_REFUSED(ashlar_memory_upload(memory.get(), given, 17), ASHLAR_INVALID_ARGUMENT,
                 "got 17 bytes to copy, expected 0 to 16");
  EXPECT_REFUSED(ashlar_memory_download(memory.get(), nullptr, 4), ASHLAR_INVALID_ARGUMENT,
                 "host: got a null pointer for 4 bytes");
  EXPECT_REFUSED(ashlar_memory_create("cpu", -1, &raw), ASHLAR_INVALID_ARGUMENT, "got -1 bytes");
}

TEST(CApiDevice, CopiesAreOrderedByAStream) {
  const int32_t words[] = {1, 2, 3};
  int32_t there[4] = {}, back[4] = {};
  EXPECT_OK(ashlar_device_enqueue_fill("cpu", there, 1, sizeof there, nullptr));
  EXPECT_OK(ashlar_device_enqueue_upload("cpu", there, words, 3, nullptr));
  EXPECT_OK(ashlar_device_download("cpu", back, there, sizeof back, nullptr));
  EXPECT_OK(ashlar_device_synchronize("cpu", nullptr));
  EXPECT_EQ(back[2], 3);
  EXPECT_EQ(back[3], 0x01010101);
  EXPECT_OK(ashlar_device_upload(nullptr, there, words, sizeof words, nullptr));
  EXPECT_EQ(there[0], 1);
  EXPECT_REFUSED(ashlar_device_upload("cpu", there, words, -4, nullptr), ASHLAR_INVALID_ARGUMENT,
                 "bytes: got -4");
  EXPECT_REFUSED(ashlar_device_upload("cpu", nullptr, words, 4, nullptr), ASHLAR_INVALID_ARGUMENT,
                 "to: got a null pointer");
  EXPECT_REFUSED(ashlar_device_enqueue_upload("cpu", there, nullptr, 2, nullptr),
                 ASHLAR_INVALID_ARGUMENT, "words: got a null pointer");
}

TEST(CApiDevice, AnAbsentDeviceHoldsNoMemory) {
  ashlar_memory* memory = nullptr;
  ashlar_timer* timer = nullptr;
  char byte = 0;
  EXPECT_REFUSED(ashlar_memory_create("h200", 4, &memory), ASHLAR_DEVICE, "not present");
  EXPECT_REFUSED(ashlar_timer_create("h200", &timer), ASHLAR_DEVICE, "not present");
  EXPECT_REFUSED(ashlar_device_upload("h200", &byte, &byte, 1, nullptr), ASHLAR_DEVICE,
                 "not present");
  EXPECT_REFUSED(ashlar_device_download("h200", &byte, &byte, 1, nullptr), ASHLAR_DEVICE,
                 "not present");
  EXPECT_REFUSED(ashlar_device_enqueue_fill("h200", &byte, 0, 1, nullptr), ASHLAR_DEVICE,
                 "not present");
  EXPECT_REFUSED(ashlar_device_synchronize("h200", nullptr), ASHLAR_DEVICE, "not present");
  EXPECT_REFUSED(ashlar_device_synchronize("abacus", nullptr), ASHLAR_INVALID_ARGUMENT, "abacus");
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(timer, nullptr);
}

TEST(CApiDevice, ATimerMeasuresARun) {
  const GraphHandle graph = conv_relu();
  const PlanHandle plan = compile_plan(graph.get());
  BoundMemory memory(graph.get(), plan.get());
  ashlar_timer* raw = nullptr;
  ASSERT_OK(ashlar_timer_create(nullptr, &raw));
  const TimerHandle timer(raw);
  EXPECT_OK(ashlar_timer_start(timer.get(), nullptr));
  ASSERT_OK(ashlar_plan_run(plan.get(), memory.pointers.data(), memory.count(),
                            memory.workspace.data(), nullptr));
  EXPECT_OK(ashlar_timer_stop(timer.get(), nullptr));
  double seconds = -1;
  EXPECT_OK(ashlar_timer_seconds(timer.get(), &seconds));
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 60);
}

}  // namespace

}  // namespace ashlar
