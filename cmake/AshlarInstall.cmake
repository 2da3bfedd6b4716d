# Install and export rules: other projects use find_package(ashlar) and link ashlar::ashlar.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(ashlar_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ashlar")

install(TARGETS ashlar EXPORT ashlarTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET ashlar_cli)
  install(TARGETS ashlar_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# libcudnn and our libcudart for machines without CUDA. Neither folder is on the loader's default
# path, because each library replaces one of NVIDIA's.
set(ashlar_hostrt_targets cudart cudart12)
set(ashlar_hostrt_folders host host12)
set(ashlar_drop_ins "${CMAKE_INSTALL_LIBDIR}/ashlar")
install(TARGETS cudnn LIBRARY DESTINATION "${ashlar_drop_ins}/cudnn")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cudnn/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ashlar-cudnn")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cudnn/hostrt/include/"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ashlar-host")
foreach(target folder IN ZIP_LISTS ashlar_hostrt_targets ashlar_hostrt_folders)
  install(TARGETS ${target} LIBRARY DESTINATION "${ashlar_drop_ins}/${folder}")
  install(CODE "
    set(place \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${ashlar_drop_ins}/${folder}\")
    file(MAKE_DIRECTORY \"\${place}\")
    foreach(name IN ITEMS libcudnn.so.9 libcudnn.so)
      file(CREATE_LINK ../cudnn/\${name} \"\${place}/\${name}\" SYMBOLIC)
    endforeach()")
endforeach()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ashlarConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake" INSTALL_DESTINATION "${ashlar_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(EXPORT ashlarTargets NAMESPACE ashlar:: DESTINATION "${ashlar_package_dir}")
install(FILES
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake"
  "${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  DESTINATION "${ashlar_package_dir}")
