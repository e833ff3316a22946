// Loop programs as OpenCL C, one kernel each. Work is not cut into blocks as in C: a work-item computes one element (of
// a Columns program one inner position), or a work-group one row of a Rows program with reductions, in whose order of
// additions a work-item is one of the lanes. So a device gives the bits that the other outputs give.
//
// A kernel's arguments are one `__global char*` for each buffer and then a struct by value, all of 64-bit fields:
//   int64 count;                 elements, rows or inner positions of all batches, as above
//   int64 n, rows;               length of the inner axis; of the reduced one of a Columns program
//   int64 sizes[A];              outer axes, outermost first
//   int64 offset[B], stride[B];  of each buffer in bytes: first element, step along the inner axis
//   int64 row_stride[B];         step along the reduced axis of a Columns program
//   int64 outer[B][A];           steps along the outer axes
//   double params[P];
// The lengths of A and P are at least 1.
#pragma once

#include <string>

#include "morel/loops/program.h"

namespace morel::codegen {

// Work-items of a group, of every kernel.
inline constexpr int opencl_group = loops::num_lanes;

// How many work-items share one unit of `count`.
enum class OpenClShape { Element, Group };
OpenClShape opencl_shape(const loops::Program& program);

// Text in front of the kernels of a file.
std::string opencl_prelude();
std::string opencl_kernel(const loops::Program& program, const std::string& symbol, size_t outer_axes);

}  // namespace morel::codegen
