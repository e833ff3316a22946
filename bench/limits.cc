// What this machine can do at best: float32 fused multiply-adds per second and memory bandwidth (STREAM's triad, J. D.
// McCalpin, 1995) with a number of threads. Prints JSON; run.py divides the cases' FLOPs and bytes by it.
//
// Usage: limits THREADS [WORKING_SET_BYTES ...]
#include <immintrin.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kRepetitions = 30;
constexpr int64_t kMultiplyAdds = 4'000'000;  // per thread and repetition: about a millisecond
constexpr int64_t kTriadBytesAtLeast = 64 << 20;
// Independent chains: latency (4 cycles) times units (2) is 8; more hides what the compiler adds.
constexpr int kChains = 12;

using Clock = std::chrono::steady_clock;

// Runs work(thread) on all threads at once and returns the shortest time from the common start to the last end.
double best_seconds(int threads, const std::function<void(int)>& work) {
  double best = 1e30;
  std::barrier barrier(threads);
  Clock::time_point start;
  auto body = [&](int thread) {
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      barrier.arrive_and_wait();
      if (thread == 0) start = Clock::now();
      barrier.arrive_and_wait();
      work(thread);
      barrier.arrive_and_wait();
      if (thread == 0) best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
  };
  std::vector<std::thread> pool;
  for (int thread = 1; thread < threads; ++thread) pool.emplace_back(body, thread);
  body(0);
  for (std::thread& worker : pool) worker.join();
  return best;
}

// Hides where a value comes from and goes to, so that no chain is left out or merged with another.
template <class Vector>
[[gnu::always_inline]] inline void opaque(Vector& value) {
  asm volatile("" : "+v"(value));
}

using FmaLoop = void (*)(int64_t steps);

__attribute__((target("avx512f"))) void fma_avx512(int64_t steps) {
  __m512 sums[kChains];
  for (__m512& sum : sums) {
    sum = _mm512_set1_ps(1.0F);
    opaque(sum);
  }
  const __m512 factor = _mm512_set1_ps(0.999F), addend = _mm512_set1_ps(0.001F);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  }
  for (__m512& sum : sums) opaque(sum);
}

__attribute__((target("avx2,fma"))) void fma_avx2(int64_t steps) {
  __m256 sums[kChains];
  for (__m256& sum : sums) {
    sum = _mm256_set1_ps(1.0F);
    opaque(sum);
  }
  const __m256 factor = _mm256_set1_ps(0.999F), addend = _mm256_set1_ps(0.001F);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  }
  for (__m256& sum : sums) opaque(sum);
}

void multiply_add_sse(int64_t steps) {
  __m128 sums[kChains];
  for (__m128& sum : sums) {
    sum = _mm_set1_ps(1.0F);
    opaque(sum);
  }
  const __m128 factor = _mm_set1_ps(0.999F), addend = _mm_set1_ps(0.001F);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m128& sum : sums) sum = _mm_add_ps(_mm_mul_ps(sum, factor), addend);
  }
  for (__m128& sum : sums) opaque(sum);
}

double peak_gflops(int threads) {
  struct Variant {
    bool available;
    FmaLoop loop;
    int lanes;
  };
  const Variant variants[] = {
      {__builtin_cpu_supports("avx512f") != 0, fma_avx512, 16},
      {__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0, fma_avx2, 8},
      {true, multiply_add_sse, 4},
  };
  double best = 0;
  for (const Variant& variant : variants) {
    if (!variant.available) continue;
    const int64_t steps = kMultiplyAdds / kChains;
    const double seconds = best_seconds(threads, [&](int) { variant.loop(steps); });
    best = std::max(best, 2.0 * threads * static_cast<double>(steps * kChains * variant.lanes) / seconds / 1e9);
  }
  return best;
}

// out = a + factor * b. Streaming stores skip the cache, which wins for large arrays only.
void triad(float* out, const float* a, const float* b, int64_t n, bool streaming) {
  const __m128 factor = _mm_set1_ps(3.0F);
  for (int64_t i = 0; i < n; i += 4) {
    const __m128 value = _mm_add_ps(_mm_load_ps(a + i), _mm_mul_ps(factor, _mm_load_ps(b + i)));
    streaming ? _mm_stream_ps(out + i, value) : _mm_store_ps(out + i, value);
  }
}

__attribute__((target("avx512f"))) void triad_avx512(float* out, const float* a, const float* b, int64_t n,
                                                     bool streaming) {
  const __m512 factor = _mm512_set1_ps(3.0F);
  for (int64_t i = 0; i < n; i += 16) {
    const __m512 value = _mm512_fmadd_ps(factor, _mm512_load_ps(b + i), _mm512_load_ps(a + i));
    streaming ? _mm512_stream_ps(out + i, value) : _mm512_store_ps(out + i, value);
  }
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Array = std::unique_ptr<float, Free>;

Array allocate(int64_t elements) {
  Array array(static_cast<float*>(std::aligned_alloc(64, elements * sizeof(float))));
  if (array == nullptr) {
    std::fprintf(stderr, "limits: no memory for %lld floats\n", static_cast<long long>(elements));
    std::exit(1);
  }
  return array;
}

// GB/s of the triad over three arrays that together have `bytes`; each thread has its own part, touched by it first.
double triad_gigabytes(int threads, int64_t bytes) {
  const int64_t elements = std::max<int64_t>(64, bytes / threads / 3 / sizeof(float) / 64 * 64);
  struct Part {
    Array out, a, b;
  };
  std::vector<Part> parts(threads);
  best_seconds(threads, [&](int thread) {
    if (parts[thread].out != nullptr) return;
    parts[thread] = {allocate(elements), allocate(elements), allocate(elements)};
    for (Array* array : {&parts[thread].out, &parts[thread].a, &parts[thread].b})
      std::fill_n(array->get(), elements, 1.0F);
  });
  const int64_t moved = 3 * elements * static_cast<int64_t>(sizeof(float)) * threads;
  const int64_t passes = std::max<int64_t>(1, kTriadBytesAtLeast / moved);
  const auto kernel = __builtin_cpu_supports("avx512f") ? triad_avx512 : triad;
  double best = 0;
  for (const bool streaming : {false, true}) {
    const double seconds = best_seconds(threads, [&](int thread) {
      Part& part = parts[thread];
      for (int64_t pass = 0; pass < passes; ++pass)
        kernel(part.out.get(), part.a.get(), part.b.get(), elements, streaming);
    });
    best = std::max(best, static_cast<double>(moved * passes) / seconds / 1e9);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  if (threads < 1) {
    std::fprintf(stderr, "usage: limits THREADS [WORKING_SET_BYTES ...]\n");
    return 2;
  }
  std::printf("{\"gflops\": %.2f, \"triad\": {", peak_gflops(threads));
  for (int i = 2; i < argc; ++i) {
    const double gigabytes = triad_gigabytes(threads, std::atoll(argv[i]));
    std::printf("%s\"%s\": %.3f", i > 2 ? ", " : "", argv[i], gigabytes);
  }
  std::printf("}}\n");
  return 0;
}
