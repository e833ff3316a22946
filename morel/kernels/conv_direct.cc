#include "morel/kernels/conv_direct.h"

#include <algorithm>
#include <cstring>

#include "morel/base/thread_pool.h"
#include "morel/kernels/conv_paths.h"
#include "morel/kernels/copy.h"

#define MOREL_SIMD_FILE "morel/kernels/conv_direct_simd.inc"
#include "morel/kernels/simd.h"

namespace morel {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr int64_t min_results = 4;  // fewer leave vectors nearly empty
constexpr int64_t task_work = int64_t{3} << 20, max_tasks = 16, rows_per_task = 4;

void copy_images(const View4& to, const View4& from) {
  kernels::copy({to.data, DType::Float32, to.size, to.stride}, {from.data, DType::Float32, from.size, from.stride});
}

}  // namespace

std::unique_ptr<DirectConv> DirectConv::make(const Conv2d& conv, const View4& input, const View4& weight,
                                             const View4& output) {
  if (conv.dtype != DType::Float32 || weight.count() == 0 || input.count() == 0) return {};
  std::unique_ptr<DirectConv> made(new DirectConv(conv, input, weight, output));
  return made->by_lines_ || made->results_ >= min_results ? std::move(made) : nullptr;
}

DirectConv::DirectConv(const Conv2d& conv, const View4& input, const View4& weight, const View4& output)
    : conv_(conv),
      image_(input),
      has_padding_(std::ranges::any_of(conv.padding, [](int64_t pad) { return pad > 0; })),
      kernel_{weight.size[2], weight.size[3]},
      results_(weight.size[0] / conv.groups) {
  if (has_padding_) {
    const std::array<int64_t, 4> size{input.size[0], input.size[1], input.size[2] + conv.padding[0] + conv.padding[1],
                                      input.size[3] + conv.padding[2] + conv.padding[3]};
    image_ = input.is_channels_first() ? View4::channels_first(nullptr, size) : View4::channels_last(nullptr, size);
  }
  by_lines_ = output.stride[1] != 1 && output.stride[3] == 1 && image_.stride[3] * conv.stride[1] == 1;
  find_runs(weight);
  pack(weight);
}

// The longer one of channels and columns of the filter is the inner axis of the runs; what follows evenly joins them.
void DirectConv::find_runs(const View4& weight) {
  const int64_t row = image_.stride[2] * conv_.dilation[0], column = image_.stride[3] * conv_.dilation[1];
  const int64_t channel = image_.stride[1], channels = weight.size[1];
  const bool channels_inside = channels >= weight.size[3];
  tap_stride_ = channels_inside ? channel : column;
  const int64_t count = channels * weight.size[2] * weight.size[3];
  const int64_t depth = MOREL_SIMD_CALL(direct_functions)().depth, length = ceil_div(count, ceil_div(count, depth));
  std::vector<size_t> first;  // runs of the parts
  int64_t next = 0;           // offset that continues a run
  const auto add = [&](int64_t c, int64_t y, int64_t x) {
    const int64_t offset = c * channel + y * row + x * column;
    const bool new_part = static_cast<int64_t>(taps_.size()) % length == 0;
    if (new_part) {
      first.push_back(runs_.size());
      next = 0;
    }
    const int64_t skip = offset - next;
    next = offset + tap_stride_;
    if (!new_part && skip == 0) ++runs_.back().k;
    else runs_.push_back({by_lines_ ? 0 : skip, by_lines_ ? skip : 0, 1});
    taps_.push_back(c * weight.stride[1] + y * weight.stride[2] + x * weight.stride[3]);
  };
  const int64_t outer = channels_inside ? 1 : channels, inner = channels_inside ? channels : 1;
  for (int64_t c = 0; c < outer; ++c)
    for (int64_t y = 0; y < weight.size[2]; ++y)
      for (int64_t x = 0; x < weight.size[3]; ++x)
        for (int64_t d = 0; d < inner; ++d) add(c + d, y, x);
  first.push_back(runs_.size());
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * length;
    parts_.push_back({{runs_.data() + first[i], first[i + 1] - first[i]}, begin, std::min(length, count - begin)});
  }
}

void DirectConv::pack(const View4& weight) {
  const DirectFunctions functions = MOREL_SIMD_CALL(direct_functions)();
  const int64_t taps = static_cast<int64_t>(taps_.size());
  group_size_ = (by_lines_ ? results_ : ceil_div(results_, functions.lanes) * functions.lanes) * taps;
  filters_ = Storage::allocate(static_cast<size_t>(group_size_ * conv_.groups) * sizeof(float));
  float* packed = reinterpret_cast<float*>(filters_->data());
  const float* filter = static_cast<const float*>(weight.data);
  for (int64_t group = 0; group < conv_.groups; ++group, packed += group_size_, filter += results_ * weight.stride[0]) {
    if (!by_lines_) {
      functions.pack(filter, weight.stride[0], taps_, results_, packed);
      continue;
    }
    for (int64_t i = 0; i < results_; ++i)
      for (int64_t k = 0; k < taps; ++k) packed[i * taps + k] = filter[i * weight.stride[0] + taps_[k]];
  }
}

View4 DirectConv::padded(const View4& input, float* memory) const {
  View4 out = image_;
  out.data = memory;
  std::memset(memory, 0, static_cast<size_t>(out.count()) * sizeof(float));
  View4 inside = out;
  inside.size = input.size;
  inside.data = memory + conv_.padding[0] * out.stride[2] + conv_.padding[2] * out.stride[3];
  copy_images(inside, input);
  return out;
}

void DirectConv::run(const View4& input, const float* bias, const View4& output) const {
  const TemporaryMemory memory(has_padding_ ? image_.count() * int64_t{sizeof(float)} : 0);
  const View4 image = has_padding_ ? padded(input, memory.as<float>()) : input;
  const DirectFunctions functions = MOREL_SIMD_CALL(direct_functions)();
  const int64_t taps = static_cast<int64_t>(taps_.size()), rows = output.size[2], columns = output.size[3];
  const int64_t vectors = ceil_div(results_, functions.lanes), panels = ceil_div(vectors, functions.panel_vectors);
  const int64_t items = output.size[0] * conv_.groups;
  // Large filters are read by one task only, small ones by each.
  const int64_t wanted = std::clamp<int64_t>(output.count() * taps / task_work, 1, max_tasks);
  const bool channels_last = output.stride[1] == 1;
  const bool by_panels = channels_last && group_size_ > image.count() / image.size[0];
  const int64_t pieces = std::min(ceil_div(wanted, items), by_panels ? panels : ceil_div(rows, rows_per_task));
  parallel_tasks(items * pieces, [&](int64_t task) {
    const int64_t piece = task % pieces, group = task / pieces % conv_.groups, n = task / pieces / conv_.groups;
    const auto cut = [&](int64_t total, int64_t idx, bool is_cut) { return is_cut ? total * idx / pieces : total; };
    const int64_t begin = by_panels ? 0 : cut(rows, piece, true), end = cut(rows, piece + 1, !by_panels);
    const int64_t channel = group * results_;
    View4 out = output;
    out.data =
        static_cast<float*>(output.data) + n * output.stride[0] + channel * output.stride[1] + begin * output.stride[2];
    out.size = {1, results_, end - begin, columns};
    const bool in_place = channels_last || by_lines_;
    const TemporaryMemory copy(in_place ? 0 : out.count() * int64_t{sizeof(float)});
    const View4 made = in_place ? out : View4::channels_last(copy.as<float>(), out.size);
    (by_lines_ ? functions.run_by_lines : functions.run)(
        {.image = static_cast<const float*>(image.data) + n * image.stride[0] +
                  group * (image.size[1] / conv_.groups) * image.stride[1] + begin * conv_.stride[0] * image.stride[2],
         .image_row = conv_.stride[0] * image.stride[2],
         .image_column = conv_.stride[1] * image.stride[3],
         .tap_stride = tap_stride_,
         .parts = parts_,
         .filters = reinterpret_cast<const float*>(filters_->data()) + group * group_size_,
         .taps = taps,
         .bias = bias ? bias + channel : nullptr,
         .out = static_cast<float*>(made.data),
         .out_channel = made.stride[1],
         .out_row = made.stride[2],
         .out_column = made.stride[3],
         .rows = end - begin,
         .columns = columns,
         .results = results_,
         .first_panel = by_panels ? panels * piece / pieces : 0,
         .last_panel = by_panels ? panels * (piece + 1) / pieces : panels});
    if (!in_place) copy_images(out, made);
  });
}

}  // namespace morel
