// float32 convolutions with filters that are known before: they are packed once, and images are read where they lie, so
// a run is nothing but tiles of products; the elements of an image under a filter are found in runs that lie evenly.
// Channels last, positions of the result are the rows of the product and its channels the columns; channels first (few
// channels then), filters are the rows and the positions of a line the columns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "morel/kernels/call.h"
#include "morel/kernels/conv.h"
#include "morel/kernels/gemm_block.h"
#include "morel/tensor/tensor.h"

namespace morel {

class DirectConv final : public Prepared {
 public:
  // For images that lie as `input` and `output` do. Null where it does not pay.
  static std::unique_ptr<DirectConv> make(const Conv2d& conv, const View4& input, const View4& weight,
                                          const View4& output);
  void run(const View4& input, const float* bias, const View4& output) const;

  // Elements under a filter that are summed at a time, so that their part of the filters stays in the cache.
  struct Part {
    std::span<const GemmRun> runs;
    int64_t begin, taps;
  };

 private:
  DirectConv(const Conv2d& conv, const View4& input, const View4& weight, const View4& output);
  void find_runs(const View4& weight);
  void pack(const View4& weight);
  View4 padded(const View4& input, float* memory) const;

  Conv2d conv_;
  View4 image_;                  // sizes and strides of the padded input
  bool has_padding_, by_lines_;  // by_lines: positions are the columns of the product
  std::array<int64_t, 2> kernel_;
  int64_t results_, tap_stride_ = 1;  // of a group; between the elements of a run
  std::vector<int64_t> taps_;         // where in a filter the elements lie, in the order of the runs
  std::vector<GemmRun> runs_;
  std::vector<Part> parts_;
  int64_t group_size_ = 0;  // elements of a group's filters
  Ref<Storage> filters_;
};

// One group of some rows of the result of one image.
struct DirectRows {
  const float* image;  // under the filter at the first position
  int64_t image_row, image_column, tap_stride;
  std::span<const DirectConv::Part> parts;
  const float* filters;
  int64_t taps;
  const float* bias;  // or null
  float* out;
  int64_t out_channel, out_row, out_column;
  int64_t rows, columns, results;
  int64_t first_panel, last_panel;  // of filters, where positions are rows; the last is not included
};

struct DirectFunctions {
  int64_t lanes, panel_vectors, depth;  // of filters in a vector, vectors in a panel, taps in a part
  // Filters as panels of columns; `taps`: offsets in a filter; `row`: between filters.
  void (*pack)(const float* weight, int64_t row, std::span<const int64_t> taps, int64_t results, float* packed);
  void (*run)(const DirectRows& rows);
  void (*run_by_lines)(const DirectRows& rows);  // `filters`: of one filter after the other
};

}  // namespace morel
