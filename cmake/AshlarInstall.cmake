# Install and export, so that another project says find_package(ashlar) and links ashlar::ashlar.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(ashlar_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ashlar")

install(TARGETS ashlar EXPORT ashlarTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET ashlar_cli)
  install(TARGETS ashlar_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ashlarConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake" INSTALL_DESTINATION "${ashlar_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(EXPORT ashlarTargets NAMESPACE ashlar:: DESTINATION "${ashlar_package_dir}")
install(FILES
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake"
  "${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  DESTINATION "${ashlar_package_dir}")
