# Headers, libmorel.so and the CMake package, for C++ programs: find_package(morel), target morel::morel.
# In a wheel all of it lies inside the Python package: morel/libmorel.so, morel/include, morel/lib/cmake/morel.
include(CMakePackageConfigHelpers)
if(DEFINED SKBUILD)
  set(library_folder .)
else()
  set(library_folder ${CMAKE_INSTALL_LIBDIR})
endif()
set(package_folder lib/cmake/morel)

install(TARGETS morel EXPORT morel_targets LIBRARY DESTINATION ${library_folder} COMPONENT cpp)
foreach(part morel_llvm morel_gloo)
  if(TARGET ${part})
    install(TARGETS ${part} LIBRARY DESTINATION ${library_folder} COMPONENT cpp)
  endif()
endforeach()
install(DIRECTORY morel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp
        FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "morel/python" EXCLUDE)
install(EXPORT morel_targets NAMESPACE morel:: FILE morel-targets.cmake DESTINATION ${package_folder} COMPONENT cpp)
file(WRITE ${CMAKE_BINARY_DIR}/morel-config.cmake [[
include("${CMAKE_CURRENT_LIST_DIR}/morel-targets.cmake")
]])
write_basic_package_version_file(${CMAKE_BINARY_DIR}/morel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/morel-config.cmake ${CMAKE_BINARY_DIR}/morel-config-version.cmake
        DESTINATION ${package_folder} COMPONENT cpp)
