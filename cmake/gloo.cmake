# libmorel_gloo.so: several processes that talk over TCP. libmorel.so opens it when a script first asks for them.
find_package(Gloo QUIET)
option(MOREL_GLOO "Build the connection of several processes (Gloo)" ${Gloo_FOUND})
if(NOT MOREL_GLOO)
  return()
endif()
find_package(Gloo REQUIRED)
file(GLOB gloo_sources CONFIGURE_DEPENDS morel/dist/gloo/*.cc)
add_library(morel_gloo SHARED ${gloo_sources})
target_include_directories(morel_gloo PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(morel_gloo PRIVATE morel morel_flags gloo)
set_target_properties(morel_gloo PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/morel
                                            INSTALL_RPATH "$ORIGIN")
