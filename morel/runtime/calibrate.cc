#include "morel/runtime/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "morel/runtime/eager.h"
#include "morel/runtime/executor.h"

namespace morel {
namespace {

constexpr int64_t num_bins = 2048;
constexpr double outliers = 1e-4;

// What was seen of one value: first its range, then how often each part of the range came.
struct Seen {
  Range range{INFINITY, -INFINITY};
  std::vector<double> bins;
  bool any_nan = false;

  double width() const { return (range.high - range.low) / num_bins; }
  void widen(const float* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      any_nan |= std::isnan(x[i]);
      if (!std::isfinite(x[i])) continue;
      range.low = std::min(range.low, double{x[i]});
      range.high = std::max(range.high, double{x[i]});
    }
  }
  void count(const float* x, int64_t n) {
    bins.resize(num_bins);
    if (!(width() > 0)) return;
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(x[i])) continue;
      const int64_t bin = static_cast<int64_t>((x[i] - range.low) / width());
      ++bins[static_cast<size_t>(std::clamp<int64_t>(bin, 0, num_bins - 1))];
    }
  }
};

Range without_outliers(const Seen& seen) {
  const double allowed = outliers * std::accumulate(seen.bins.begin(), seen.bins.end(), 0.0);
  int64_t first = 0, last = num_bins - 1;
  for (double left = allowed; first < last && left >= seen.bins[first]; ++first) left -= seen.bins[first];
  for (double left = allowed; last > first && left >= seen.bins[last]; --last) left -= seen.bins[last];
  return {seen.range.low + first * seen.width(), seen.range.low + (last + 1) * seen.width()};
}

// Relative entropy of magnitudes cut off at bin `limit` against their 128 levels, each spread over the bins of it that
// are not empty (Migacz, "8-bit inference with TensorRT", 2017).
double divergence(const std::vector<double>& magnitudes, int64_t limit) {
  constexpr int64_t levels = 128;
  std::vector<double> kept(magnitudes.begin(), magnitudes.begin() + limit);
  kept.back() += std::accumulate(magnitudes.begin() + limit, magnitudes.end(), 0.0);
  std::vector<double> spread(static_cast<size_t>(limit));
  for (int64_t level = 0; level < levels; ++level) {
    const int64_t begin = level * limit / levels, end = (level + 1) * limit / levels;
    double sum = 0, filled = 0;
    for (int64_t i = begin; i < end; ++i) sum += magnitudes[i], filled += kept[i] > 0;
    for (int64_t i = begin; i < end; ++i) spread[i] = kept[i] > 0 ? sum / filled : 0;
  }
  const double all = std::accumulate(kept.begin(), kept.end(), 0.0),
               all_spread = std::accumulate(spread.begin(), spread.end(), 0.0);
  double out = 0;
  for (int64_t i = 0; i < limit; ++i) {
    if (kept[i] == 0) continue;
    out += kept[i] / all * std::log(kept[i] / all / std::max(spread[i] / all_spread, 1e-12));
  }
  return out;
}

Range least_divergence(const Seen& seen) {
  const double largest = std::max(std::abs(seen.range.low), std::abs(seen.range.high));
  std::vector<double> magnitudes(num_bins);
  for (int64_t i = 0; i < num_bins; ++i) {
    const double middle = seen.range.low + (static_cast<double>(i) + 0.5) * seen.width();
    const int64_t bin = static_cast<int64_t>(std::abs(middle) / largest * num_bins);
    magnitudes[static_cast<size_t>(std::min(bin, num_bins - 1))] += seen.bins[i];
  }
  double best = INFINITY, threshold = largest;
  for (int64_t limit = 128; limit <= num_bins; limit += 16) {
    const double found = divergence(magnitudes, limit);
    if (found >= best) continue;
    best = found;
    threshold = largest * static_cast<double>(limit) / num_bins;
  }
  return {std::max(seen.range.low, -threshold), std::min(seen.range.high, threshold)};
}

Range chosen(const Seen& seen, RangeMethod method) {
  if (!(seen.range.low <= seen.range.high)) return {};
  if (method == RangeMethod::MinMax || !(seen.width() > 0)) return seen.range;
  return method == RangeMethod::Kl ? least_divergence(seen) : without_outliers(seen);
}

// Where a value is made, for messages.
std::string origin_of(const Value& value) {
  const Node& node = *node_of(value);
  if (!node.op) return "an input";
  return cat("a result of '", node.name, "'", node.place.empty() ? "" : " (" + node.place + ")");
}

}  // namespace

std::vector<Range> calibrate(const Ref<Graph>& graph, const Values& values, const std::vector<Values>& batches,
                             RangeMethod method) {
  Values results = values;
  std::swap(graph->results, results);
  std::vector<Seen> seen(values.size());
  try {
    const Executor executor(graph);
    const auto pass = [&](void (Seen::*look)(const float*, int64_t)) {
      for (const Values& batch : batches) {
        const Values found = executor.run({batch.data(), batch.size()});
        for (size_t i = 0; i < found.size(); ++i) {
          const Tensor tensor = contiguous(found[i].tensor());
          (seen[i].*look)(tensor.as<float>(), tensor.size());
        }
      }
    };
    pass(&Seen::widen);
    for (size_t i = 0; i < values.size(); ++i)
      MOREL_CHECK(!seen[i].any_nan, Value, "For 'quantise', ", origin_of(values[i]),
                  " is NaN for the examples of the calibration");
    if (method != RangeMethod::MinMax) pass(&Seen::count);
  } catch (...) {
    std::swap(graph->results, results);
    throw;
  }
  std::swap(graph->results, results);
  std::vector<Range> out;
  for (const Seen& one : seen) out.push_back(chosen(one, method));
  return out;
}

}  // namespace morel
