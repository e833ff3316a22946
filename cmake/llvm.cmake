# libmorel_llvm.so: loop programs compiled while the program runs. libmorel.so opens it when it first needs it and does
# without it where it is not there. LLVM is linked statically: 28 MB of it are used where its own library has 129, and no
# other copy of LLVM in the process can get in the way.
find_program(LLVM_CONFIG llvm-config PATHS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
if(LLVM_CONFIG)
  set(found_llvm ON)
else()
  set(found_llvm OFF)
endif()
option(MOREL_LLVM "Build the just-in-time compiler (LLVM 19)" ${found_llvm})
if(NOT MOREL_LLVM)
  return()
endif()
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "MOREL_LLVM needs LLVM 19: install llvm-19-dev or set LLVM_CONFIG")
endif()
function(ask_llvm variable)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
                          COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(answer UNIX_COMMAND "${answer}")
  set(${variable} ${answer} PARENT_SCOPE)
endfunction()
ask_llvm(LLVM_INCLUDE_DIR --includedir)
ask_llvm(LLVM_LIBRARIES --link-static --libfiles orcjit native)
# LLVM compresses debug information with it; Debian has the library without its development package.
find_library(ZSTD_LIBRARY NAMES zstd libzstd.so.1 REQUIRED)

file(GLOB llvm_sources CONFIGURE_DEPENDS morel/codegen/llvm/*.cc)
add_library(morel_llvm SHARED ${llvm_sources})
target_include_directories(morel_llvm PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(morel_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIR})
target_compile_definitions(morel_llvm PRIVATE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_link_libraries(morel_llvm PRIVATE morel morel_flags ${LLVM_LIBRARIES} ZLIB::ZLIB ${ZSTD_LIBRARY})
target_link_options(morel_llvm PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(morel_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/morel
                                            INSTALL_RPATH "$ORIGIN")
