// What follows a kernel: elementwise work on its first result, which the kernel lets run on every part as soon as that
// is finished, while it is in the caches.
#pragma once

#include <cstdint>

namespace morel {

class Epilogue {
 public:
  // Elements [begin + i * step, begin + i * step + n) for i < rows of a dense result, in the order in which it lies in
  // memory.
  struct Part {
    int64_t begin, rows, step, n;
  };
  // Called once for each element, by the thread that made it; parts run at the same time.
  virtual void run(const Part& part) const = 0;

 protected:
  ~Epilogue() = default;
};

// On all of a result at once: for kernels without parts, or whose only task would leave the other threads idle. Null:
// nothing to do.
void run_epilogue(const Epilogue* epilogue, int64_t count);

}  // namespace morel
