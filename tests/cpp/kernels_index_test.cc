// Gathers, scatters and masked choices against plain loops.
#include <complex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "morel/base/error.h"
#include "morel/base/thread_pool.h"
#include "morel/kernels/index.h"
#include "morel/kernels/select.h"

namespace morel::kernels {
namespace {

std::span<const int64_t> span_of(const Numbers& values) { return {values.data(), values.size()}; }
Numbers dense(const Numbers& shape) { return dense_strides(span_of(shape)); }
int64_t offset_of(const Numbers& position, const Numbers& strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < position.size(); ++axis) offset += position[axis] * strides[axis];
  return offset;
}
Numbers unflatten(int64_t flat, const Numbers& shape) {
  Numbers position(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return position;
}
template <class T>
std::vector<T> random_numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(static_cast<double>(random() % 2001) / 8.0 - 100.0);
  return values;
}
std::string message_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    return error.message();
  }
  return "";
}

TEST(KernelsIndex, ResolveBroadcastNegativeAndErrors) {
  const Numbers shape{2, 3};
  const std::vector<int32_t> first{0, -1};
  const std::vector<int64_t> second{3, -4, 1};
  const Numbers first_strides{1, 0}, second_strides{0, 1};
  const IndexArray arrays[] = {{first.data(), DType::Int32, span_of(first_strides)},
                               {second.data(), DType::Int64, span_of(second_strides)}};
  const Numbers sizes{5, 4};
  const IndexRule rule{"index", true, 1};
  EXPECT_EQ(resolve_indices(rule, span_of(shape), arrays, span_of(sizes)), (std::vector<int64_t>{3, 0, 1, 19, 16, 17}));
  EXPECT_EQ(message_of([&] {
              resolve_indices({"take", false}, span_of(shape), arrays, span_of(sizes));
            }),
            "For 'take', index -1 at position [1, 0] is out of bounds for axis 0 with size 5: it must be in [0, 5).");
  const Numbers small{5, 3};
  EXPECT_EQ(message_of([&] { resolve_indices(rule, span_of(shape), arrays, span_of(small)); }),
            "For 'index', index 3 at position [0, 0] is out of bounds for axis 2 with size 3: it must be in [-3, 3).");
  const std::vector<int16_t> tuples{0, 1, 4, -1, 2, 2};
  EXPECT_EQ(resolve_tuples({"gather_nd"}, tuples.data(), DType::Int16, 3, span_of(sizes)),
            (std::vector<int64_t>{1, 19, 10}));
  EXPECT_THROW(resolve_tuples({"gather_nd"}, tuples.data(), DType::Float32, 3, span_of(sizes)), Error);
  std::vector<int64_t> many(100000, 2);
  many[70001] = many[40000] = 9;
  const Numbers flat{100000}, one{1}, size{9};
  const IndexArray array{many.data(), DType::Int64, span_of(one)};
  EXPECT_NE(message_of([&] {
              resolve_indices(rule, span_of(flat), {&array, 1}, span_of(size));
            }).find("position [40000]"),
            std::string::npos);
}

template <class T>
void check_rows(int64_t outer, int64_t rows, int64_t inner, int64_t count) {
  std::mt19937 random(3);
  const RowsShape shape{dtype_of<T>, outer, rows, inner};
  std::vector<int64_t> positions(count);
  for (int64_t& position : positions) position = random() % rows;
  const std::vector<T> input = random_numbers<T>(outer * rows * inner, 1);
  std::vector<T> out(outer * count * inner);
  gather_rows(out.data(), input.data(), shape, positions);
  std::vector<T> source = random_numbers<T>(std::max<int64_t>(1, outer * count * inner), 2);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < inner; ++c) {
        ASSERT_EQ(out[(o * count + i) * inner + c], input[(o * rows + positions[i]) * inner + c]);
      }
    }
  }
  for (const ScatterOp op :
       {ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Max, ScatterOp::Min}) {
    if (is_complex(dtype_of<T>) && (op == ScatterOp::Max || op == ScatterOp::Min)) continue;
    // Products of many factors stay finite.
    for (size_t idx = 0; op == ScatterOp::Mul && idx < source.size(); ++idx)
      source[idx] = idx % 3 == 0 ? T(0) - T(1) : T(1);
    for (const bool is_scalar : {false, true}) {
      std::vector<T> target = input, wanted = input;
      scatter_rows(target.data(), shape, positions, source.data(), op, is_scalar);
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t c = 0; c < inner; ++c) {
            T& place = wanted[(o * rows + positions[i]) * inner + c];
            const T value = is_scalar ? source[0] : source[(o * count + i) * inner + c];
            switch (op) {
              case ScatterOp::Set: place = value; break;
              case ScatterOp::Add: place = static_cast<T>(place + value); break;
              case ScatterOp::Sub: place = static_cast<T>(place - value); break;
              case ScatterOp::Mul: place = static_cast<T>(place * value); break;
              default:
                if constexpr (!is_complex(dtype_of<T>))
                  place = op == ScatterOp::Max ? std::max(place, value) : std::min(place, value);
            }
          }
        }
      }
      ASSERT_EQ(target, wanted) << static_cast<int>(op);
    }
  }
  std::vector<T> grad(input.size(), T(5)), wanted_grad(input.size(), T(0));
  gather_rows_backward(grad.data(), shape, positions, source.data());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t c = 0; c < inner; ++c) {
        T& place = wanted_grad[(o * rows + positions[i]) * inner + c];
        place = static_cast<T>(place + source[(o * count + i) * inner + c]);
      }
    }
  }
  ASSERT_EQ(grad, wanted_grad);
}

TEST(KernelsIndex, GatherAndScatterRows) {
  for (const auto& [outer, rows, inner, count] : std::vector<std::array<int64_t, 4>>{{1, 7, 1, 20},
                                                                                     {3, 5, 4, 9},
                                                                                     {1, 50, 300, 400},
                                                                                     {2, 11, 33, 1000},
                                                                                     {1, 1000, 1, 50000},
                                                                                     {1, 3, 5, 0},
                                                                                     {20, 4, 3, 700}}) {
    check_rows<float>(outer, rows, inner, count);
    check_rows<double>(outer, rows, inner, count);
    check_rows<int32_t>(outer, rows, inner, count);
    check_rows<uint8_t>(outer, rows, inner, count);
    check_rows<int16_t>(outer, rows, inner, count);
    check_rows<int64_t>(outer, rows, inner, count);
    check_rows<std::complex<float>>(outer, rows, inner, std::min<int64_t>(count, 20));
  }
}

TEST(KernelsIndex, HalfSumsRoundOnce) {
  const std::vector<int64_t> positions(4096, 1);
  std::vector<Float16> source(4096, to_float16(0.25f)), target(3, to_float16(0.0f));
  scatter_rows(target.data(), {DType::Float16, 1, 3, 1}, positions, source.data(), ScatterOp::Add);
  EXPECT_EQ(to_float(target[1]), 1024.0f);  // adding in float16 would stop at 512
  bool flags[3] = {false, true, false};
  const bool on = true;
  const std::vector<int64_t> one{2, 2};
  scatter_rows(flags, {DType::Bool, 1, 3, 1}, one, &on, ScatterOp::Add, true);
  EXPECT_TRUE(flags[2] && flags[1] && !flags[0]);
  std::vector<int32_t> whole{10, 7, INT32_MIN};
  const std::vector<int64_t> all{0, 1, 2};
  const std::vector<int32_t> by{3, 0, -1};
  scatter_rows(whole.data(), {DType::Int32, 1, 3, 1}, all, by.data(), ScatterOp::Div);
  EXPECT_EQ(whole, (std::vector<int32_t>{3, 0, INT32_MIN}));
}

TEST(KernelsIndex, SameBitsForAnyThreadCount) {
  const int before = num_threads();
  const int64_t count = 3000, rows = 13, inner = 500;
  std::mt19937 random(1);
  std::vector<int64_t> positions(count);
  for (int64_t& position : positions) position = random() % rows;
  std::vector<float> grad(count * inner), one(rows * inner), many(rows * inner);
  for (float& value : grad) value = static_cast<float>(random()) * 1e-9f;
  set_num_threads(1);
  gather_rows_backward(one.data(), {DType::Float32, 1, rows, inner}, positions, grad.data());
  set_num_threads(4);
  gather_rows_backward(many.data(), {DType::Float32, 1, rows, inner}, positions, grad.data());
  set_num_threads(before);
  EXPECT_EQ(one, many);
}

// index arrays of several ranks and axes, with the input larger than the index elsewhere
TEST(KernelsIndex, GatherAndScatterElements) {
  std::mt19937 random(2);
  const std::vector<std::pair<Numbers, Numbers>> cases{
      {{6}, {9}},         {{5, 7}, {5, 7}}, {{5, 7}, {3, 6}}, {{4, 3, 6}, {4, 2, 5}}, {{3, 5000}, {7, 5000}},
      {{2, 700}, {2, 3}}, {{90}, {5000}}};
  for (const auto& [input_shape, index_shape] : cases) {
    for (size_t axis = 0; axis < input_shape.size(); ++axis) {
      Numbers input_sizes = input_shape;
      for (size_t other = 0; other < input_shape.size(); ++other) {
        if (other != axis) input_sizes[other] = std::max(input_sizes[other], index_shape[other]);
      }
      const Numbers input_strides = dense(input_sizes), index_strides = dense(index_shape);
      const int64_t count = count_elements(span_of(index_shape)), input_count = count_elements(span_of(input_sizes));
      std::vector<int32_t> index(count);
      for (int32_t& value : index)
        value = static_cast<int32_t>(random() % (2 * input_sizes[axis])) - static_cast<int32_t>(input_sizes[axis]);
      const std::vector<double> input = random_numbers<double>(input_count, 5),
                                source = random_numbers<double>(count, 6);
      std::vector<double> out(count), target = input, wanted = input, replaced = input, wanted_replaced = input;
      const IndexRule rule{"gather_elements"};
      const ConstView index_view{index.data(), DType::Int32, span_of(index_shape), span_of(index_strides)};
      const ConstView source_view{source.data(), DType::Float64, span_of(index_shape), span_of(index_strides)};
      gather_elements(rule, {out.data(), DType::Float64, span_of(index_shape), span_of(index_strides)},
                      {input.data(), DType::Float64, span_of(input_sizes), span_of(input_strides)}, index_view, axis);
      scatter_elements(rule, {target.data(), DType::Float64, span_of(input_sizes), span_of(input_strides)}, index_view,
                       source_view, axis, ScatterOp::Add);
      scatter_elements(rule, {replaced.data(), DType::Float64, span_of(input_sizes), span_of(input_strides)},
                       index_view, source_view, axis, ScatterOp::Set);
      for (int64_t flat = 0; flat < count; ++flat) {
        Numbers position = unflatten(flat, index_shape);
        position[axis] = index[flat] < 0 ? index[flat] + input_sizes[axis] : index[flat];
        const int64_t place = offset_of(position, input_strides);
        ASSERT_EQ(out[flat], input[place]);
        wanted[place] += source[flat];
        wanted_replaced[place] = source[flat];
      }
      EXPECT_EQ(target, wanted);
      EXPECT_EQ(replaced, wanted_replaced);
      index[count / 2] = static_cast<int32_t>(input_sizes[axis]);
      const std::vector<double> kept = target;
      EXPECT_NE(message_of([&] {
                  scatter_elements(rule, {target.data(), DType::Float64, span_of(input_sizes), span_of(input_strides)},
                                   index_view, source_view, axis, ScatterOp::Add);
                }).find("out of bounds for axis " + std::to_string(axis)),
                std::string::npos);
      EXPECT_EQ(target, kept);
    }
  }
}

TEST(KernelsIndex, ElementsOfHalvesAndScalars) {
  const Numbers shape{2, 3};
  const Numbers strides = dense(shape), zeros{0, 0};
  std::vector<Float16> target(6, to_float16(1.0f));
  const Float16 value = to_float16(2.0f);
  const std::vector<int64_t> index{0, 0, 1, 1, 1, 1};
  const ConstView index_view{index.data(), DType::Int64, span_of(shape), span_of(strides)};
  scatter_elements({"scatter"}, {target.data(), DType::Float16, span_of(shape), span_of(strides)}, index_view,
                   {&value, DType::Float16, span_of(shape), span_of(zeros)}, 1, ScatterOp::Add);
  const float wanted[] = {5, 3, 1, 1, 7, 1};
  for (int idx = 0; idx < 6; ++idx) EXPECT_EQ(to_float(target[idx]), wanted[idx]) << idx;
}

TEST(KernelsIndex, MaskedSelectScatterFillAndNonzero) {
  for (const Numbers& shape : {Numbers{}, Numbers{7}, Numbers{5, 0}, Numbers{30, 40, 50}, Numbers{2, 40000}}) {
    const Numbers strides = dense(shape);
    const int64_t count = count_elements(span_of(shape));
    const std::vector<float> input = random_numbers<float>(count, 4);
    std::mt19937 random(6);
    std::vector<char> mask(count + 1);
    for (char& chosen : mask) chosen = random() % 3 == 0;
    const ConstView view{input.data(), DType::Float32, span_of(shape), span_of(strides)};
    const ConstView mask_view{mask.data(), DType::Bool, span_of(shape), span_of(strides)};
    std::vector<float> wanted;
    std::vector<int64_t> wanted_positions;
    for (int64_t idx = 0; idx < count; ++idx) {
      if (!mask[idx]) continue;
      wanted.push_back(input[idx]);
      for (const int64_t coordinate : unflatten(idx, shape)) wanted_positions.push_back(coordinate);
    }
    const int64_t chosen = count_nonzero(mask_view);
    ASSERT_EQ(chosen, static_cast<int64_t>(wanted.size()));
    std::vector<float> out(chosen), target = input, back(count, 0.0f);
    std::vector<int64_t> positions(chosen * shape.size());
    masked_select(out.data(), view, mask_view);
    EXPECT_EQ(out, wanted);
    nonzero(positions.data(), mask_view);
    EXPECT_EQ(positions, wanted_positions);
    const float value = -1.0f;
    masked_fill({target.data(), DType::Float32, span_of(shape), span_of(strides)}, mask_view, &value);
    masked_scatter({back.data(), DType::Float32, span_of(shape), span_of(strides)}, mask_view, out.data());
    for (int64_t idx = 0; idx < count; ++idx) {
      ASSERT_EQ(target[idx], mask[idx] ? -1.0f : input[idx]);
      ASSERT_EQ(back[idx], mask[idx] ? input[idx] : 0.0f);
    }
  }
  // a mask that is broadcast along the first axis
  const Numbers shape{3, 4};
  const Numbers strides = dense(shape), broadcast{0, 1};
  std::vector<int32_t> values(12, 1);
  const bool mask[] = {true, false, false, true};
  const int32_t filler = 9;
  masked_fill({values.data(), DType::Int32, span_of(shape), span_of(strides)},
              {mask, DType::Bool, span_of(shape), span_of(broadcast)}, &filler);
  for (int idx = 0; idx < 12; ++idx) EXPECT_EQ(values[idx], mask[idx % 4] ? 9 : 1);
  const std::vector<Float16> halves{{0x8000}, {0x0001}, {0x7e00}};
  const Numbers three{3};
  const Numbers one{1};
  EXPECT_EQ(count_nonzero({halves.data(), DType::Float16, span_of(three), span_of(one)}), 2);
}

TEST(KernelsIndex, OneHot) {
  const std::vector<int64_t> indices{0, 2, -1, 3, 1, 2};  // [2, 3]
  const int16_t on = 5, off = -5;
  std::vector<int16_t> out(2 * 3 * 3);
  one_hot(out.data(), DType::Int16, indices.data(), DType::Int64, 2, 3, 3, &on, &off);
  for (int o = 0; o < 2; ++o) {
    for (int d = 0; d < 3; ++d) {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(out[(o * 3 + d) * 3 + i], indices[o * 3 + i] == d ? on : off);
    }
  }
}

}  // namespace
}  // namespace morel::kernels
