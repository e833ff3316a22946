# Third-party libraries behind one target, `morel_libraries`. They are private to libmorel.so: no header of ours shows one.
add_library(morel_libraries INTERFACE)

if(MOREL_ONEDNN)
  find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
  find_library(DNNL_LIBRARY dnnl REQUIRED)
  target_include_directories(morel_libraries SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
  # gomp is oneDNN's own; we call it only to keep it to one thread (omp_set_num_threads). No -fopenmp: a pragma must never
  # start a second team of threads beside base/thread_pool.
  target_link_libraries(morel_libraries INTERFACE ${DNNL_LIBRARY} gomp)
  target_compile_definitions(morel_libraries INTERFACE MOREL_HAVE_ONEDNN=1)
endif()

# zlib: gzip of data sets, CRC-32 of checkpoints. nlohmann-json (headers only): the header of safetensors files.
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(morel_libraries INTERFACE ZLIB::ZLIB nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
