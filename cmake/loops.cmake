# The ahead-of-time loop library. The host tool morel-loopgen prints the common loops as C, one set of files per
# instruction set, which the C compiler turns into object code of libmorel.so.
#   morel-loopgen --out FOLDER --shards N --isas sse4,avx2,...
# writes exactly loops_<isa>_<0..N-1>.c and loops_table.cc. CMake must know these names before the tool exists, so the
# number of shards is fixed, and which shard a loop goes to must depend on its name alone: a changed operator then
# changes, and recompiles, one file per instruction set.
set(loop_sources)
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/tools/loopgen.cc)
  message(STATUS "tools/loopgen.cc is not there: no ahead-of-time loops")
  return()
endif()

set(shards 8)
set(out ${CMAKE_BINARY_DIR}/loops)
add_executable(morel-loopgen tools/loopgen.cc $<TARGET_OBJECTS:morel_core>)
target_include_directories(morel-loopgen PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(morel-loopgen PRIVATE morel_flags morel_libraries)

set(loop_options -std=gnu11 -O3 -fno-math-errno -fno-trapping-math -Wno-unused-variable -Wno-unused-function
    -Wno-unused-but-set-variable -Wno-type-limits)
if(MOREL_SANITIZE)
  list(APPEND loop_options -O1)  # the last -O counts
endif()
math(EXPR last "${shards} - 1")
foreach(isa ${MOREL_INSTRUCTION_SETS})
  foreach(shard RANGE ${last})
    set(source ${out}/loops_${isa}_${shard}.c)
    list(APPEND loop_sources ${source})
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${loop_options};${MOREL_FLAGS_${isa}}")
  endforeach()
endforeach()
list(APPEND loop_sources ${out}/loops_table.cc)

# The tool leaves a file alone whose text would stay the same, so Ninja recompiles only those that differ.
list(JOIN MOREL_INSTRUCTION_SETS "," isas)
add_custom_command(
  OUTPUT ${loop_sources}
  COMMAND morel-loopgen --out ${out} --shards ${shards} --isas ${isas}
  DEPENDS morel-loopgen
  COMMENT "Writing the ahead-of-time loops"
  VERBATIM)
