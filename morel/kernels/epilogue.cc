#include "morel/kernels/epilogue.h"

#include "morel/base/thread_pool.h"

namespace morel {

void run_epilogue(const Epilogue* epilogue, int64_t count) {
  if (!epilogue) return;
  parallel_for(count, 1 << 15, [&](int64_t begin, int64_t end) { epilogue->run({begin, 1, 0, end - begin}); });
}

}  // namespace morel
