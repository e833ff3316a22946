#include "morel/runtime/opencl/api.h"

#include <dlfcn.h>

#include "morel/base/error.h"

namespace morel::opencl {
namespace {

Api load() {
  // Never closed: drivers keep threads.
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  MOREL_CHECK(library, Runtime,
              "there is no OpenCL on this system (libOpenCL.so.1 cannot be opened); install a loader and a driver, on "
              "Debian ocl-icd-libopencl1 and that of the device, such as pocl-opencl-icd for processors");
  Api out;
#define X(name)                                                                                                        \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(library, #name));                                              \
  MOREL_CHECK(out.name, Runtime, "libOpenCL.so.1 has no function " #name "; OpenCL 1.2 is needed");
  MOREL_OPENCL_FUNCTIONS(X)
#undef X
  return out;
}

std::string name_of(cl_int status) {
  switch (status) {
    case CL_DEVICE_NOT_AVAILABLE: return "the device is not available";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "the device has no memory left";
    case CL_OUT_OF_RESOURCES: return "the device has too few resources";
    case CL_OUT_OF_HOST_MEMORY: return "the host has no memory left";
    case CL_BUILD_PROGRAM_FAILURE: return "the program does not compile";
    default: return "error " + std::to_string(status);
  }
}

}  // namespace

const Api& api() {
  static const Api loaded = load();
  return loaded;
}

void check(cl_int status, const char* function) {
  if (status == CL_SUCCESS) return;
  const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY;
  raise(memory ? ErrorKind::Memory : ErrorKind::Runtime, "OpenCL: ", function, " failed: ", name_of(status));
}

}  // namespace morel::opencl
