// What compiled loops call: functions of libm over short vectors, copies between strided elements and blocks,
// reductions of complex values and of positions. All of it is the interpreter's own arithmetic (loops/scalar.h).
#pragma once

#include <span>
#include <string>

#include "morel/loops/expr.h"
#include "morel/loops/program.h"

namespace morel::codegen {

struct Helper {
  std::string name;
  void* address;
};

// All helpers, under the names below.
std::span<const Helper> helpers();

// void(const T* x, [const T* y,] R* out, int64_t m)
std::string helper_name(loops::ScalarOp op, DType dtype);
// Products of complex numbers: void(T* lanes, const T* x, int64_t m)
std::string reduce_helper_name(loops::ReduceOp op, DType dtype);
// The same: void(T* lanes); positions: void(T* lanes, int64_t* index). The result is the first element of what is
// passed last.
std::string fold_helper_name(loops::ReduceOp op, DType dtype);
// void(void* to, const char* from, int64_t stride, int64_t m, int64_t padded): pads with zeros
std::string load_helper_name(int64_t size);
// void(char* to, int64_t stride, const void* from, int64_t m)
std::string save_helper_name(int64_t size);
inline constexpr const char* stream_end_helper_name = "morel_stream_end";  // void()

}  // namespace morel::codegen
