# Install rules: other projects use find_package(ashlar) or pkg-config.

include(CMakePackageConfigHelpers)
set(ashlar_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ashlar")

# Debug information is most of the size. Packagers who split it off turn this off.
if(ASHLAR_INSTALL_STRIPPED)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)" ALL_COMPONENTS)
endif()

# The archive has a component of its own: cmake --install BUILD --component static adds it.
set(ashlar_static COMPONENT static)
if(NOT ASHLAR_INSTALL_STATIC)
  list(APPEND ashlar_static EXCLUDE_FROM_ALL)
endif()
set_target_properties(ashlar PROPERTIES EXPORT_NAME static)
install(TARGETS ashlar EXPORT ashlarStaticTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${ashlar_static})
install(EXPORT ashlarStaticTargets NAMESPACE ashlar:: DESTINATION "${ashlar_package_dir}"
        ${ashlar_static})
if(ASHLAR_INSTALL_STRIPPED)  # CMake strips no archives
  install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" --strip-debug
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:ashlar>\"
    COMMAND_ERROR_IS_FATAL ANY)" ${ashlar_static})
endif()
if(TARGET ashlar_shared)
  set_target_properties(ashlar_shared PROPERTIES EXPORT_NAME shared)
  install(TARGETS ashlar_shared EXPORT ashlarSharedTargets
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT ashlarSharedTargets NAMESPACE ashlar:: DESTINATION "${ashlar_package_dir}")
endif()
if(TARGET ashlar_cli)
  install(TARGETS ashlar_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# libcudnn and our libcudart for machines without CUDA. Neither folder is on the loader's default
# path, because each library replaces one of NVIDIA's.
if(TARGET cudnn)
  set(ashlar_hostrt_targets cudart cudart12)
  set(ashlar_hostrt_folders host host12)
  set(ashlar_drop_ins "${CMAKE_INSTALL_LIBDIR}/ashlar")
  install(TARGETS cudnn LIBRARY DESTINATION "${ashlar_drop_ins}/cudnn")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/cudnn/include/"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ashlar-cudnn")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/tools/hostrt/include/"
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
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ashlarConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake" INSTALL_DESTINATION "${ashlar_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/ashlarConfig.cmake"
  "${PROJECT_BINARY_DIR}/ashlarConfigVersion.cmake"
  DESTINATION "${ashlar_package_dir}")

# Relative to the folder of the file itself, so that the installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE ashlar_pc_prefix)
foreach(folder IN ITEMS LIBDIR INCLUDEDIR)
  string(TOLOWER "ashlar_pc_${folder}" variable)
  set(${variable} "${CMAKE_INSTALL_${folder}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    set(${variable} "\${prefix}/${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()
set(ashlar_pc_libraries ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(FILTER ashlar_pc_libraries INCLUDE REGEX "^(stdc\\+\\+|c\\+\\+|m)$")
list(APPEND ashlar_pc_libraries ${OpenMP_CXX_LIB_NAMES} ${CMAKE_DL_LIBS} pthread)
list(REMOVE_DUPLICATES ashlar_pc_libraries)
list(TRANSFORM ashlar_pc_libraries PREPEND " -l")
list(JOIN ashlar_pc_libraries "" ashlar_pc_private)
set(ashlar_pc_public "")
if(NOT TARGET ashlar_shared)
  set(ashlar_pc_public "${ashlar_pc_private}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ashlar.pc.in" "${PROJECT_BINARY_DIR}/ashlar.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/ashlar.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
