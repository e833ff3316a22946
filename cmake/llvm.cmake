# libmorel_llvm.so: loop programs compiled while the program runs. libmorel.so opens it when it first needs it and does
# without it where it is not there. LLVM is linked dynamically (129 MB, shared with whatever else uses it).
find_path(LLVM_INCLUDE_DIR llvm/IR/IRBuilder.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
find_library(LLVM_LIBRARY LLVM-19 PATHS /usr/lib/llvm-19/lib)
if(LLVM_INCLUDE_DIR AND LLVM_LIBRARY AND NOT DEFINED SKBUILD)
  set(found_llvm ON)
else()
  set(found_llvm OFF)  # wheels are built without: LLVM would double their size
endif()
option(MOREL_LLVM "Build the just-in-time compiler (LLVM 19)" ${found_llvm})
if(NOT MOREL_LLVM)
  return()
endif()
if(NOT LLVM_INCLUDE_DIR OR NOT LLVM_LIBRARY)
  message(FATAL_ERROR "MOREL_LLVM needs LLVM 19: install llvm-19-dev or set LLVM_INCLUDE_DIR and LLVM_LIBRARY")
endif()

file(GLOB llvm_sources CONFIGURE_DEPENDS morel/codegen/llvm/*.cc)
add_library(morel_llvm SHARED ${llvm_sources})
target_include_directories(morel_llvm PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(morel_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIR})
target_compile_definitions(morel_llvm PRIVATE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_link_libraries(morel_llvm PRIVATE morel morel_flags ${LLVM_LIBRARY})
set_target_properties(morel_llvm PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/morel
                                            INSTALL_RPATH "$ORIGIN")
