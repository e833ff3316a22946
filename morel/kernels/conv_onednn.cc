// float32 convolutions in oneDNN. Every task runs one primitive on one thread; how the work is cut depends on shapes
// alone: by images, by rows of the output when images are few, or by channels of the result when the weight is so large
// that reading it once per task would cost more than reading the images again.
#include "morel/kernels/conv_paths.h"

#if MOREL_HAVE_ONEDNN
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/onednn.inc"

namespace morel {
namespace {

using dnnl::memory;

enum class Pass : int64_t { Forward, BackwardData, BackwardWeight };
enum class Order : int64_t { ChannelsLast, Any };

// ---- cached primitives
// ------------------------------------------------------------------------------------------------------

// Sizes of the convolution that one task computes; channels are those of all its groups.
struct Problem {
  Pass pass;
  Order order;
  int64_t images, in_channels, out_channels, groups;
  int64_t in_size[2], out_size[2], kernel[2], stride[2], dilation[2];
  int64_t padding[4];
  int64_t has_bias;

  memory::dims input() const { return {images, in_channels, in_size[0], in_size[1]}; }
  memory::dims output() const { return {images, out_channels, out_size[0], out_size[1]}; }
  memory::dims weight() const {
    if (groups == 1) return {out_channels, in_channels, kernel[0], kernel[1]};
    return {groups, out_channels / groups, in_channels / groups, kernel[0], kernel[1]};
  }
};

struct Primitive {
  dnnl::primitive primitive;
  memory::desc input, weight, output, bias, scratchpad;
};

memory::desc any_order(const memory::dims& dims) {
  return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
}

// brgconv comes first in oneDNN 2.6's list and is twice as slow as the next one where input channels are few (measured:
// LeNet's layers; equal from 32 channels on).
template <class Desc>
void skip_brgconv(Desc& desc, const Problem& p) {
  if (p.in_channels / p.groups >= 32 || !std::string_view(desc.impl_info_str()).starts_with("brgconv:")) return;
  Desc next = desc;
  if (next.next_impl() && std::string_view(next.impl_info_str()).starts_with("jit:avx512")) desc = next;
}

std::shared_ptr<const Primitive> make_primitive(const Problem& p) {
  const auto image = [&](const memory::dims& dims) {
    return p.order == Order::Any ? any_order(dims)
                                 : memory::desc(dims, memory::data_type::f32, memory::format_tag::nhwc);
  };
  const memory::desc input = image(p.input()), output = image(p.output()), weight = any_order(p.weight());
  const memory::desc bias = p.has_bias ? any_order({p.out_channels}) : memory::desc();
  const memory::dims stride{p.stride[0], p.stride[1]}, dilation{p.dilation[0] - 1, p.dilation[1] - 1};
  const memory::dims before{p.padding[0], p.padding[2]}, after{p.padding[1], p.padding[3]};
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::engine& engine = onednn_engine();
  const auto forward_kind =
      p.pass == Pass::Forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training;
  auto out = std::make_shared<Primitive>();
  dnnl::convolution_forward::primitive_desc forward(
      {forward_kind, algorithm, input, weight, p.pass == Pass::BackwardData ? memory::desc() : bias, output, stride,
       dilation, before, after},
      attr, engine);
  if (p.pass == Pass::Forward) {
    skip_brgconv(forward, p);
    *out = {dnnl::convolution_forward(forward),
            forward.src_desc(),
            forward.weights_desc(),
            forward.dst_desc(),
            forward.bias_desc(),
            forward.scratchpad_desc()};
  } else if (p.pass == Pass::BackwardData) {
    const dnnl::convolution_backward_data::primitive_desc desc(
        {algorithm, input, weight, output, stride, dilation, before, after}, attr, engine, forward);
    *out = {dnnl::convolution_backward_data(desc),
            desc.diff_src_desc(),
            desc.weights_desc(),
            desc.diff_dst_desc(),
            memory::desc(),
            desc.scratchpad_desc()};
  } else {
    const dnnl::convolution_backward_weights::primitive_desc desc(
        {algorithm, input, weight, bias, output, stride, dilation, before, after}, attr, engine, forward);
    *out = {dnnl::convolution_backward_weights(desc),
            desc.src_desc(),
            desc.diff_weights_desc(),
            desc.diff_dst_desc(),
            desc.diff_bias_desc(),
            desc.scratchpad_desc()};
  }
  return out;
}

std::shared_ptr<const Primitive> find_primitive(const Problem& problem) {
  static OneDnnCache<Primitive>& cache = *new OneDnnCache<Primitive>;  // outlives the threads that use it at exit
  SerialOpenMp serial;
  return cache.get(onednn_key(problem), [&] { return make_primitive(problem); });
}

// ---- arrays of a task
// -------------------------------------------------------------------------------------------------------

struct Array {
  memory::desc desc;
  float* data;
};

Array image_array(const View4& view) {
  const auto& s = view.size;
  memory::dims strides(view.stride.begin(), view.stride.end());
  // An axis of one element has no stride of its own: name the one that the dense orders have.
  if (view.is_channels_last()) {
    strides = {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
  } else if (view.is_channels_first()) {
    strides = {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
  }
  return {memory::desc(memory::dims(s.begin(), s.end()), memory::data_type::f32, strides),
          static_cast<float*>(view.data)};
}

Array weight_array(const View4& view, int64_t groups) {
  if (groups == 1) return image_array(view);
  const auto &s = view.size, &t = view.stride;
  const int64_t per_group = s[0] / groups;
  return {memory::desc({groups, per_group, s[1], s[2], s[3]}, memory::data_type::f32,
                       {per_group * t[0], t[0], t[1], t[2], t[3]}),
          static_cast<float*>(view.data)};
}

void reorder(const Array& from, const Array& to) {
  static OneDnnCache<dnnl::reorder>& cache = *new OneDnnCache<dnnl::reorder>;
  SerialOpenMp serial;
  std::string key(reinterpret_cast<const char*>(&from.desc.data), sizeof from.desc.data);
  key.append(reinterpret_cast<const char*>(&to.desc.data), sizeof to.desc.data);
  const auto primitive = cache.get(key, [&] {
    return std::make_shared<dnnl::reorder>(
        dnnl::reorder::primitive_desc(onednn_engine(), from.desc, onednn_engine(), to.desc));
  });
  MOREL_CHECK(primitive, Internal,
              "internal error: oneDNN cannot reorder an image of a convolution; please report it.");
  memory source(from.desc, onednn_engine(), from.data), target(to.desc, onednn_engine(), to.data);
  primitive->execute(onednn_stream(), source, target);
}

int64_t bytes_of(const memory::desc& desc) { return static_cast<int64_t>(desc.get_size()); }

// An array that a primitive reads: the user's own when the layouts agree, else a reordered copy.
class Input {
 public:
  Input(const Array& user, const memory::desc& wanted) : array_(user) {
    if (user.desc == wanted) return;
    copy_ = std::make_unique<TemporaryMemory>(bytes_of(wanted));
    array_ = {wanted, copy_->as<float>()};
    reorder(user, array_);
  }
  float* data() const { return array_.data; }

 private:
  Array array_;
  std::unique_ptr<TemporaryMemory> copy_;
};

// An array that a primitive writes.
class Output {
 public:
  Output(const Array& user, const memory::desc& wanted) : user_(user), array_(user) {
    if (user.desc == wanted) return;
    copy_ = std::make_unique<TemporaryMemory>(bytes_of(wanted));
    array_ = {wanted, copy_->as<float>()};
  }
  float* data() const { return array_.data; }
  void finish() const {
    if (copy_) reorder(array_, user_);
  }

 private:
  Array user_, array_;
  std::unique_ptr<TemporaryMemory> copy_;
};

// Runs a primitive; `input` and so on are in its own layouts.
void execute(const Primitive& p, Pass pass, float* input, float* weight, float* output, const float* bias) {
  SerialOpenMp serial;
  const dnnl::engine& engine = onednn_engine();
  const TemporaryMemory scratchpad(bytes_of(p.scratchpad));
  const bool data = pass == Pass::BackwardData, weights = pass == Pass::BackwardWeight;
  std::unordered_map<int, memory> arguments{
      {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, memory(p.input, engine, input)},
      {weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, memory(p.weight, engine, weight)},
      {pass == Pass::Forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, memory(p.output, engine, output)},
      {DNNL_ARG_SCRATCHPAD, memory(p.scratchpad, engine, scratchpad.as<void>())}};
  if (bias) {
    arguments.emplace(weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, memory(p.bias, engine, const_cast<float*>(bias)));
  }
  p.primitive.execute(onednn_stream(), arguments);
}

// ---- cutting
// ----------------------------------------------------------------------------------------------------------------

struct Range {
  int64_t begin, size;
};
Range piece(int64_t total, int64_t count, int64_t idx) {
  const int64_t begin = total * idx / count;
  return {begin, total * (idx + 1) / count - begin};
}

View4 slice(View4 view, int axis, Range range) {
  view.data = static_cast<float*>(view.data) + range.begin * view.stride[axis];
  view.size[axis] = range.size;
  return view;
}

constexpr int64_t task_work = int64_t{3} << 20;  // multiply-adds that are worth a task: about 40 us
constexpr int64_t max_tasks = 16;
constexpr int64_t large_weight_bytes = 1 << 20;
constexpr int64_t channels_per_task = 32;

struct Call {
  const Conv2d& conv;
  Pass pass;
  View4 input, weight, output;

  const View4& result() const { return pass == Pass::BackwardData ? input : output; }
  int64_t wanted_tasks() const {
    // Vectors run over output channels and partly empty ones cost as much as full ones.
    const auto padded = [](int64_t channels, int64_t unit) { return (channels + unit - 1) / unit * unit; };
    const int64_t out_channels = padded(output.size[1] / conv.groups, 16) * conv.groups;
    const int64_t positions = output.size[0] * output.size[2] * output.size[3];
    const int64_t work = positions * out_channels * padded(weight.size[1], 4) * weight.size[2] * weight.size[3];
    return std::clamp<int64_t>(work / task_work, 1, max_tasks);
  }
  // Pieces of the channels that this pass's result has, or 1 when it is not to be cut so. All multiples of 16.
  int64_t channel_pieces() const {
    const int64_t channels = pass == Pass::BackwardData ? input.size[1] : output.size[1];
    const bool large = weight.count() * int64_t{sizeof(float)} >= large_weight_bytes;
    if (!large || conv.groups != 1 || channels % 16 != 0) return 1;
    return std::clamp<int64_t>(std::min(wanted_tasks(), channels / channels_per_task), 1, 8);
  }
  Order order() const {
    const bool last = (input.is_channels_last() && !input.is_channels_first()) ||
                      (output.is_channels_last() && !output.is_channels_first());
    const bool both = input.is_channels_last() && output.is_channels_last();
    return last || both ? Order::ChannelsLast : Order::Any;
  }
  Problem problem(bool has_bias) const {
    Problem p{.pass = pass,
              .order = order(),
              .images = input.size[0],
              .in_channels = input.size[1],
              .out_channels = output.size[1],
              .groups = conv.groups,
              .has_bias = has_bias};
    for (int axis : {0, 1}) {
      p.in_size[axis] = input.size[2 + axis];
      p.out_size[axis] = output.size[2 + axis];
      p.kernel[axis] = weight.size[2 + axis];
      p.stride[axis] = conv.stride[axis];
      p.dilation[axis] = conv.dilation[axis];
    }
    std::copy(conv.padding.begin(), conv.padding.end(), p.padding);
    return p;
  }
};

// The weight in a primitive's layout: shared by all tasks when each needs all of it.
class SharedWeight {
 public:
  SharedWeight(const Call& call, const Primitive& primitive)
      : input_(weight_array(call.weight, call.conv.groups), primitive.weight), desc_(primitive.weight) {}
  bool fits(const Primitive& primitive) const { return primitive.weight == desc_; }
  float* data() const { return input_.data(); }

 private:
  Input input_;
  memory::desc desc_;
};

// What one task computes in a forward or backward-data pass, with the primitive that does it.
struct Job {
  Call call;
  const float* bias = nullptr;
  std::shared_ptr<const Primitive> primitive = nullptr;
};

// A slice of a dense image, cut along the outermost axis and at most one other.
Epilogue::Part part_of(const View4& slice, const View4& image) {
  std::array<int, 4> axes{0, 1, 2, 3};
  std::ranges::sort(axes, [&](int a, int b) { return slice.stride[a] < slice.stride[b]; });
  Epilogue::Part part{static_cast<float*>(slice.data) - static_cast<float*>(image.data), 1, 0, 1};
  for (const int axis : axes) {
    if (slice.size[axis] == 1) continue;
    if (part.rows == 1 && slice.stride[axis] == part.n) {
      part.n *= slice.size[axis];
    } else {
      if (part.rows == 1) part.step = slice.stride[axis];
      MOREL_ASSERT(slice.stride[axis] == part.step * part.rows);
      part.rows *= slice.size[axis];
    }
  }
  return part;
}

void run_job(const Job& job, const SharedWeight* shared) {
  const Primitive& p = *job.primitive;
  std::unique_ptr<Input> own;
  if (!shared || !shared->fits(p))
    own = std::make_unique<Input>(weight_array(job.call.weight, job.call.conv.groups), p.weight);
  float* weight = own ? own->data() : shared->data();
  const Array input = image_array(job.call.input), output = image_array(job.call.output);
  if (job.call.pass == Pass::Forward) {
    const Input x(input, p.input);
    const Output y(output, p.output);
    execute(p, Pass::Forward, x.data(), weight, y.data(), job.bias);
    y.finish();
  } else {
    const Input dy(output, p.output);
    const Output dx(input, p.input);
    execute(p, Pass::BackwardData, dx.data(), weight, dy.data(), nullptr);
    dx.finish();
  }
}

// Rows [rows.begin, + rows.size) of the output, with the input rows that they read and the padding that is left.
Call rows_of(const Call& call, Range rows, Conv2d& conv) {
  const int64_t reach = (call.weight.size[2] - 1) * conv.dilation[0] + 1, height = call.input.size[2];
  const int64_t begin = rows.begin * conv.stride[0] - conv.padding[0];
  const int64_t end = begin + (rows.size - 1) * conv.stride[0] + reach;
  const int64_t first = std::clamp<int64_t>(begin, 0, height), last = std::clamp<int64_t>(end, first, height);
  conv.padding[0] = first - begin;
  conv.padding[1] = end - last;
  return {conv, call.pass, slice(call.input, 2, {first, last - first}), call.weight, slice(call.output, 2, rows)};
}

// Computes `whole` in jobs.
bool run_jobs(std::vector<Job>& jobs, const Call& whole, bool has_bias, bool share_weight, const Epilogue* epilogue) {
  for (Job& job : jobs) {
    job.primitive = find_primitive(job.call.problem(has_bias));
    if (!job.primitive) return false;
  }
  std::unique_ptr<SharedWeight> shared;
  if (share_weight) shared = std::make_unique<SharedWeight>(jobs[0].call, *jobs[0].primitive);
  parallel_tasks(static_cast<int64_t>(jobs.size()), [&](int64_t task) {
    run_job(jobs[task], shared.get());
    if (epilogue && jobs.size() > 1) epilogue->run(part_of(jobs[task].call.result(), whole.result()));
  });
  if (jobs.size() == 1) run_epilogue(epilogue, whole.result().count());
  return true;
}

bool run_by_channels(const Call& call, int64_t pieces, const float* bias, const Epilogue* epilogue) {
  std::vector<Job> jobs;
  const bool forward = call.pass == Pass::Forward;
  const int64_t blocks = (forward ? call.output.size[1] : call.input.size[1]) / 16;
  for (int64_t idx = 0; idx < pieces; ++idx) {
    Range channels = piece(blocks, pieces, idx);
    channels = {channels.begin * 16, channels.size * 16};
    Call part = call;
    part.weight = slice(call.weight, forward ? 0 : 1, channels);
    if (forward) {
      part.output = slice(call.output, 1, channels);
    } else {
      part.input = slice(call.input, 1, channels);
    }
    jobs.push_back({part, bias ? bias + channels.begin : nullptr});
  }
  return run_jobs(jobs, call, bias != nullptr, false, epilogue);
}

bool run_by_images(const Call& call, const float* bias, const Epilogue* epilogue) {
  const int64_t images = call.input.size[0], wanted = call.wanted_tasks(), pieces = std::min(images, wanted);
  const bool cut_rows = call.pass == Pass::Forward && images < wanted && images < 4;
  const int64_t row_pieces = cut_rows ? std::min((wanted + images - 1) / images, (call.output.size[2] + 3) / 4) : 1;
  std::vector<Conv2d> convs(row_pieces, call.conv);  // the calls of rows refer to their own padding
  std::vector<Job> jobs;
  for (int64_t idx = 0; idx < pieces; ++idx) {
    Call part = call;
    part.input = slice(call.input, 0, piece(images, pieces, idx));
    part.output = slice(call.output, 0, piece(images, pieces, idx));
    if (row_pieces == 1) {
      jobs.push_back({part, bias});
      continue;
    }
    for (int64_t row = 0; row < row_pieces; ++row) {
      convs[row] = call.conv;
      const Range rows = piece(call.output.size[2], row_pieces, row);
      jobs.push_back({rows_of(part, rows, convs[row]), bias});
    }
  }
  return run_jobs(jobs, call, bias != nullptr, true, epilogue);
}

// ---- backward weight
// --------------------------------------------------------------------------------------------------------

// The result channels of each task are its own: nothing to add.
bool backward_weight_by_channels(const Call& call, int64_t pieces, float* bias_grad) {
  std::vector<Job> jobs;
  const int64_t blocks = call.output.size[1] / 16;
  for (int64_t idx = 0; idx < pieces; ++idx) {
    Range channels = piece(blocks, pieces, idx);
    channels = {channels.begin * 16, channels.size * 16};
    Call part = call;
    part.weight = slice(call.weight, 0, channels);
    part.output = slice(call.output, 1, channels);
    jobs.push_back({part, bias_grad ? bias_grad + channels.begin : nullptr});
  }
  for (Job& job : jobs) {
    job.primitive = find_primitive(job.call.problem(bias_grad != nullptr));
    if (!job.primitive) return false;
  }
  parallel_tasks(pieces, [&](int64_t task) {
    const Job& job = jobs[task];
    const Primitive& p = *job.primitive;
    const Input x(image_array(job.call.input), p.input), dy(image_array(job.call.output), p.output);
    const Output dw(weight_array(job.call.weight, 1), p.weight);
    execute(p, Pass::BackwardWeight, x.data(), dw.data(), dy.data(), job.bias);
    dw.finish();
  });
  return true;
}

// Each task sums over some images; the sums of the tasks are added in order.
bool backward_weight_by_images(const Call& call, float* bias_grad) {
  const int64_t images = call.input.size[0];
  const int64_t pieces = std::min({images, call.wanted_tasks(), int64_t{8}}), channels = call.output.size[1];
  std::vector<Job> jobs;
  for (int64_t idx = 0; idx < pieces; ++idx) {
    Call part = call;
    part.input = slice(call.input, 0, piece(images, pieces, idx));
    part.output = slice(call.output, 0, piece(images, pieces, idx));
    jobs.push_back({part, bias_grad, find_primitive(part.problem(bias_grad != nullptr))});
    // Sums can only be added element by element in one layout.
    if (!jobs[idx].primitive || jobs[idx].primitive->weight != jobs[0].primitive->weight) return false;
  }
  const memory::desc& layout = jobs[0].primitive->weight;
  const Array user = weight_array(call.weight, call.conv.groups);
  const bool direct = pieces == 1 && user.desc == layout;
  const int64_t weight_count = bytes_of(layout) / int64_t{sizeof(float)}, count = weight_count + channels;
  const TemporaryMemory sums(direct ? 0 : pieces * count * int64_t{sizeof(float)});
  const auto sum = [&](int64_t task) { return direct ? user.data : sums.as<float>() + task * count; };
  parallel_tasks(pieces, [&](int64_t task) {
    const Job& job = jobs[task];
    const Primitive& p = *job.primitive;
    const Input x(image_array(job.call.input), p.input), dy(image_array(job.call.output), p.output);
    float* bias = bias_grad ? (direct ? bias_grad : sum(task) + weight_count) : nullptr;
    execute(p, Pass::BackwardWeight, x.data(), sum(task), dy.data(), bias);
  });
  if (direct) return true;
  if (pieces > 1) {
    parallel_for(bias_grad ? count : weight_count, 1 << 15, [&](int64_t begin, int64_t end) {
      float* total = sum(0);
      for (int64_t task = 1; task < pieces; ++task) {
        const float* other = sum(task);
        for (int64_t idx = begin; idx < end; ++idx) total[idx] += other[idx];
      }
    });
  }
  reorder({layout, sum(0)}, user);
  if (bias_grad) std::memcpy(bias_grad, sum(0) + weight_count, channels * sizeof(float));
  return true;
}

}  // namespace

bool onednn_forward(const Conv2d& conv, const View4& input, const View4& weight, const float* bias, const View4& output,
                    const Epilogue* epilogue) {
  const Call call{conv, Pass::Forward, input, weight, output};
  const int64_t pieces = call.channel_pieces();
  return pieces > 1 ? run_by_channels(call, pieces, bias, epilogue) : run_by_images(call, bias, epilogue);
}

bool onednn_backward_data(const Conv2d& conv, const View4& output_grad, const View4& weight, const View4& input_grad,
                          const Epilogue* epilogue) {
  const Call call{conv, Pass::BackwardData, input_grad, weight, output_grad};
  const int64_t pieces = call.channel_pieces();
  return pieces > 1 ? run_by_channels(call, pieces, nullptr, epilogue) : run_by_images(call, nullptr, epilogue);
}

bool onednn_backward_weight(const Conv2d& conv, const View4& input, const View4& output_grad, const View4& weight_grad,
                            float* bias_grad) {
  const Call call{conv, Pass::BackwardWeight, input, weight_grad, output_grad};
  const int64_t pieces = call.channel_pieces();
  return pieces > 1 ? backward_weight_by_channels(call, pieces, bias_grad) : backward_weight_by_images(call, bias_grad);
}

}  // namespace morel

#else

namespace morel {

bool onednn_forward(const Conv2d&, const View4&, const View4&, const float*, const View4&, const Epilogue*) {
  return false;
}
bool onednn_backward_data(const Conv2d&, const View4&, const View4&, const View4&, const Epilogue*) { return false; }
bool onednn_backward_weight(const Conv2d&, const View4&, const View4&, const View4&, float*) { return false; }

}  // namespace morel
#endif
