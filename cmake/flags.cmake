# Compiler, linker and sanitizer settings; `morel_flags` carries those of our own sources to each target.

if(NOT CMAKE_BUILD_TYPE)
  # GCC 12 vectorises in earnest only with -O3, which is Release's.
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
# -g1 keeps file and line in back traces and profiles at a third of -g's size and time.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The build folder may be moved: its libraries find each other relative to themselves.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

find_program(CCACHE ccache)
foreach(language C CXX)
  if(CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${CCACHE})
  endif()
endforeach()

find_package(Threads REQUIRED)
add_library(morel_flags INTERFACE)
target_compile_options(
  morel_flags
  INTERFACE
    -Wall
    -Wextra
    -Wno-restrict  # GCC 12 warns about its own std::string
    -Wno-unused-parameter
    -Wno-missing-field-initializers  # designated initialisers leave fields out on purpose
    # Calls inside the library need not go through the procedure linkage table.
    -fno-semantic-interposition
    # No path of this machine in messages and debug information; the compiler cache works across checkouts.
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
    # Numerics are a promise (docs/design.md, section 5): a*b+c is one rounding only where the source says fma.
    -ffp-contract=off)
target_link_options(morel_flags INTERFACE -Wl,-Bsymbolic-functions -Wl,--as-needed)
target_link_libraries(morel_flags INTERFACE Threads::Threads)

find_program(MOLD mold)
if(MOLD)
  target_link_options(morel_flags INTERFACE -fuse-ld=mold)
endif()

if(MOREL_SANITIZE STREQUAL "address")
  set(sanitizer_options -fsanitize=address,undefined -fno-sanitize=alignment,vptr -fno-omit-frame-pointer)
elseif(MOREL_SANITIZE STREQUAL "thread")
  set(sanitizer_options -fsanitize=thread -fno-omit-frame-pointer)
elseif(MOREL_SANITIZE)
  message(FATAL_ERROR "MOREL_SANITIZE is '${MOREL_SANITIZE}'; it may be address, thread or empty")
endif()
if(sanitizer_options)
  target_compile_options(morel_flags INTERFACE ${sanitizer_options} -O1)
  target_link_options(morel_flags INTERFACE ${sanitizer_options})
  add_compile_definitions(MOREL_SANITIZE_${MOREL_SANITIZE})
endif()

# The instruction sets that get their own copy of the loops, and of every source named *_<set>.cc.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(MOREL_INSTRUCTION_SETS sse4 avx2 avx512)
else()
  set(MOREL_INSTRUCTION_SETS generic)
endif()
set(MOREL_FLAGS_sse4 -msse4.2)
set(MOREL_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(MOREL_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mfma -mf16c -mbmi2
    -mprefer-vector-width=512)
set(MOREL_FLAGS_generic "")

# A source named x_avx2.cc is compiled for AVX2 and called only where base/cpu says so. It must keep to headers without
# inline functions that others use too: the linker may keep its copy of such a function for everybody.
function(morel_instruction_sets)
  foreach(set ${MOREL_INSTRUCTION_SETS})
    foreach(source ${ARGN})
      if(source MATCHES "_${set}\\.cc$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${MOREL_FLAGS_${set}};-O3")
      endif()
    endforeach()
  endforeach()
endfunction()
