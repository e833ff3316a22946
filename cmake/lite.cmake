# Libraries for devices (morel/lite/README.md): no graph, no operator rules, no compiler, no oneDNN.
#   libmorel_lite.so       all kernels and loops, from objects of libmorel.so
#   libmorel_lite_core.so  for given models and AVX2 alone, and small: `./m lite-size` selects and builds it
set(device_folders "base|tensor|kernels|loops/run|lite")
set(device_objects $<TARGET_OBJECTS:morel_core>)
set(device_objects
    "$<FILTER:${device_objects},INCLUDE,/morel/(${device_folders})/[a-z0-9_]+[.]cc|/loops/library[.]cc>")
set(device_objects "$<FILTER:${device_objects},EXCLUDE,_onednn[.]cc>")
set(without_onednn morel/kernels/conv_onednn.cc morel/kernels/gemm_onednn.cc)  # say that it is not there
add_library(morel_lite SHARED ${device_objects} $<TARGET_OBJECTS:morel> ${without_onednn})
target_include_directories(morel_lite PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_features(morel_lite PUBLIC cxx_std_20)
target_link_libraries(morel_lite PRIVATE morel_flags)
add_executable(lite_predict examples/cpp/lite_predict.cc)
target_link_libraries(lite_predict PRIVATE morel_lite)

# The core is compiled for its selection: selection.h and loops.txt, which `./m lite-size` writes.
set(core ${CMAKE_BINARY_DIR}/lite_core)
set(core_loops ${core}/loops_avx2_0.c ${core}/loops_table.cc)
add_custom_command(
  OUTPUT ${core_loops}
  COMMAND morel-loopgen --out ${core} --shards 1 --isas avx2 --only ${core}/loops.txt
  DEPENDS morel-loopgen ${core}/loops.txt
  COMMENT "Writing the loops of the core"
  VERBATIM)
set(core_loop_options ${loop_options} -O2 -ftree-vectorize -fvect-cost-model=dynamic ${MOREL_FLAGS_avx2})
set_source_files_properties(${core}/loops_avx2_0.c PROPERTIES COMPILE_OPTIONS "${core_loop_options}")
# Tables for unwinding would be a seventh of the library: functions that throw nothing have none where the compiler writes
# the tables itself, and a frame pointer spares a row for every push. Kernels want that register.
add_library(morel_lite_core_flags INTERFACE)
target_include_directories(morel_lite_core_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(morel_lite_core_flags INTERFACE MOREL_ONLY_AVX2)
set(core_headers "-include ${CMAKE_SOURCE_DIR}/morel/lite/core/errors.h")
string(APPEND core_headers " -include ${CMAKE_SOURCE_DIR}/morel/lite/core/dtypes.h")
target_compile_options(
  morel_lite_core_flags
  INTERFACE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-dwarf2-cfi-asm
            "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Os -include ${core}/selection.h ${core_headers}>")

file(GLOB kernel_sources CONFIGURE_DEPENDS morel/kernels/*.cc)
add_library(morel_lite_core_kernels OBJECT EXCLUDE_FROM_ALL ${kernel_sources})
target_link_libraries(morel_lite_core_kernels PRIVATE morel_flags morel_lite_core_flags)

set(patterns)
foreach(folder base tensor loops/run lite lite/core)
  list(APPEND patterns morel/${folder}/*.cc)
endforeach()
file(GLOB device_sources CONFIGURE_DEPENDS ${patterns})
list(FILTER device_sources EXCLUDE REGEX "/tensor/symbolic\\.cc$")
add_library(morel_lite_core SHARED EXCLUDE_FROM_ALL ${device_sources} morel/loops/library.cc ${core_loops}
                                                    $<TARGET_OBJECTS:morel_lite_core_kernels>)
target_include_directories(morel_lite_core PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(morel_lite_core PRIVATE morel_flags morel_lite_core_flags)
target_compile_options(morel_lite_core PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
target_link_options(morel_lite_core PRIVATE -Wl,--gc-sections -Wl,-s -Wl,--build-id=none
                    -Wl,--version-script=${CMAKE_SOURCE_DIR}/morel/lite/core/exports.map)
if(MOLD)
  target_link_options(morel_lite_core PRIVATE -Wl,--icf=all)  # nothing here compares addresses of functions
endif()
add_executable(lite_predict_core EXCLUDE_FROM_ALL examples/cpp/lite_predict.cc)
target_link_libraries(lite_predict_core PRIVATE morel_lite_core)
