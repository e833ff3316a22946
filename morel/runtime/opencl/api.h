// The OpenCL library of the system, opened when a device is first asked for: neither `import morel` nor a wheel needs
// it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

namespace morel::opencl {

#define MOREL_OPENCL_FUNCTIONS(X)                                                                                      \
  X(clGetPlatformIDs)                                                                                                  \
  X(clGetDeviceIDs)                                                                                                    \
  X(clGetDeviceInfo)                                                                                                   \
  X(clCreateContext)                                                                                                   \
  X(clCreateCommandQueue)                                                                                              \
  X(clCreateBuffer)                                                                                                    \
  X(clReleaseMemObject)                                                                                                \
  X(clEnqueueReadBuffer)                                                                                               \
  X(clEnqueueWriteBuffer)                                                                                              \
  X(clEnqueueFillBuffer)                                                                                               \
  X(clEnqueueNDRangeKernel)                                                                                            \
  X(clCreateProgramWithSource)                                                                                         \
  X(clBuildProgram)                                                                                                    \
  X(clGetProgramBuildInfo)                                                                                             \
  X(clCreateKernel)                                                                                                    \
  X(clSetKernelArg)

struct Api {
#define X(name) decltype(&::name) name;
  MOREL_OPENCL_FUNCTIONS(X)
#undef X
};

// Raises Runtime where the system has no libOpenCL.so.1.
const Api& api();
// Raises Runtime with the name of the function and OpenCL's error.
void check(cl_int status, const char* function);

}  // namespace morel::opencl
