# The extension morel/_core and, in <build>/python, a package that can be imported as it stands.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB bind_sources CONFIGURE_DEPENDS morel/python/bind/*.cc)
if(bind_sources)
  nanobind_add_module(_core NB_STATIC ${bind_sources})
  target_include_directories(_core PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(_core PRIVATE morel morel_flags)
  target_compile_definitions(_core PRIVATE MOREL_VERSION="${PROJECT_VERSION}")
  # nanobind hides everything by default. Inline functions and variables of our headers must stay one object across
  # _core and libmorel.so (thread-local state, type information of errors), so only nanobind's own names are hidden.
  set_target_properties(_core PROPERTIES CXX_VISIBILITY_PRESET default
                                         LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/morel
                                         INSTALL_RPATH "$ORIGIN")
  if(DEFINED SKBUILD)
    install(TARGETS _core LIBRARY DESTINATION . COMPONENT python)
  endif()
else()
  message(STATUS "morel/python/bind has no sources: no Python extension")
endif()

# Each entry of morel/python/morel as a link: edits of Python files count at once, without a build. As a target of its own
# this is all that `import morel` needs.
add_custom_target(
  python_package ALL
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/link_package.py ${CMAKE_SOURCE_DIR}/morel/python/morel
          ${CMAKE_BINARY_DIR}/python/morel
  COMMENT "Linking the Python sources into the build folder"
  VERBATIM)
foreach(part _core morel_llvm morel_gloo)
  if(TARGET ${part})
    add_dependencies(python_package ${part})
  endif()
endforeach()
