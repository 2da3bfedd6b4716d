# The emulated GPU (tests/emulator): replacements for libcuda and NVRTC that run kernels on the CPU.
# Nothing links them; tools/emulated makes programs load them instead of the real ones.

set(ashlar_emulator_folder "${PROJECT_BINARY_DIR}/emulator")
set(ashlar_emulated "${PROJECT_SOURCE_DIR}/tools/emulated" --build "${PROJECT_BINARY_DIR}")
set(ashlar_emulator_sources "${PROJECT_SOURCE_DIR}/tests/emulator")

add_library(emulated_nvrtc SHARED "${ashlar_emulator_sources}/nvrtc.cpp"
            "${ashlar_emulator_sources}/options.cpp")
target_compile_definitions(emulated_nvrtc PRIVATE
  EMULATOR_COMPILER="${CMAKE_CXX_COMPILER}" EMULATOR_OPTIMISATION="-Og"
  EMULATOR_SHIM="${ashlar_emulator_sources}/shim/cuda.hpp")
set_target_properties(emulated_nvrtc PROPERTIES OUTPUT_NAME nvrtc)

set(driver_sources block_runner cp_async driver fiber graphs kernels mbarriers memory mma_types
                   options shared_window streams tensor_cores tensor_maps thread_sync tma)
list(TRANSFORM driver_sources PREPEND "${ashlar_emulator_sources}/")
list(TRANSFORM driver_sources APPEND ".cpp")
add_library(emulated_cuda SHARED ${driver_sources})
target_include_directories(emulated_cuda PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(emulated_cuda PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
set_target_properties(emulated_cuda PROPERTIES OUTPUT_NAME cuda SUFFIX ".so.1")

# No sanitizer: uninstrumented programs load them, and they switch stacks.
foreach(target IN ITEMS emulated_nvrtc emulated_cuda)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wno-missing-field-initializers -fno-strict-aliasing
                         -U_FORTIFY_SOURCE)
  if(ASHLAR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${ashlar_emulator_folder}"
                        CXX_EXTENSIONS ON)
endforeach()
