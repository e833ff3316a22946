// Views, joins, padding, creation: values, aliasing, gradients, in-place writes through views, errors.
#include "ops_support.h"

namespace morel {
namespace {

using namespace morel::testing;  // NOLINT

Tensor range(const Shape& shape, DType dtype = DType::Float32) {
  return one("reshape", {one("arange", {0, num_elements(shape), 1, dtype}), Ints(shape)});
}

TEST(Shape, ReshapeIsAViewWhereItCanBe) {
  const Tensor x = range({2, 3, 4});
  const Tensor flat = one("reshape", {x, Ints{6, -1}});
  EXPECT_EQ(flat.shape(), (Shape{6, 4}));
  EXPECT_EQ(flat.data(), x.data());
  const Tensor swapped = one("transpose", {x, Ints{1, 0, 2}});  // [3, 2, 4], strides 4 12 1
  const Tensor split = one("reshape", {swapped, Ints{3, 1, 2, 2, 2}});
  EXPECT_EQ(split.data(), x.data());
  expect_near(split, elements(contiguous(swapped)));
  const Tensor copied = one("reshape", {swapped, Ints{6, 4}});
  EXPECT_NE(copied.data(), x.data());
  expect_near(copied, elements(contiguous(swapped)));
  EXPECT_THROW(one("view", {swapped, Ints{6, 4}}), Error);
  EXPECT_EQ(one("reshape", {Tensor::empty({0, 3}, DType::Float32), Ints{3, 0}}).shape(), (Shape{3, 0}));
  EXPECT_EQ(one("reshape", {tensor({}, {1}), Ints{1, 1}}).shape(), (Shape{1, 1}));
  EXPECT_THROW(one("reshape", {x, Ints{5, -1}}), Error);
  EXPECT_THROW(one("reshape", {x, Ints{-1, -1}}), Error);
  EXPECT_THROW(one("reshape", {x, Ints{25}}), Error);
}

TEST(Shape, Axes) {
  const Tensor x = range({2, 1, 3});
  EXPECT_EQ(one("squeeze", {x}).shape(), (Shape{2, 3}));
  EXPECT_EQ(one("squeeze", {x, 1}).shape(), (Shape{2, 3}));
  EXPECT_EQ(one("squeeze", {x, 0}).shape(), x.shape());
  EXPECT_THROW(one("squeeze", {x, 3}), Error);
  EXPECT_EQ(one("expand_dims", {x, -1}).shape(), (Shape{2, 1, 3, 1}));
  EXPECT_EQ(one("movedim", {x, 0, 2}).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(one("movedim", {x, Ints{0, 1}, Ints{-1, 0}}).shape(), (Shape{1, 3, 2}));
  expect_near(one("swapaxes", {range({2, 3}), 0, 1}), {0, 3, 1, 4, 2, 5});
  EXPECT_THROW(one("transpose", {x, Ints{0, 0, 1}}), Error);
  EXPECT_THROW(one("transpose", {x, Ints{0, 1}}), Error);
  EXPECT_EQ(one("flatten", {range({2, 3, 4})}).shape(), (Shape{2, 12}));
  EXPECT_EQ(one("flatten", {range({2, 3, 4}), "C", 0}).shape(), (Shape{24}));
  expect_near(one("flatten", {range({2, 3}), "F", 0}), {0, 3, 1, 4, 2, 5});
  EXPECT_EQ(one("flatten", {tensor({}, {1})}).shape(), (Shape{1}));
}

TEST(Shape, Slices) {
  const Tensor x = range({4, 5});
  expect_near(one("narrow", {x, 1, 3, 2}), {3, 4, 8, 9, 13, 14, 18, 19});
  expect_near(one("select", {x, 0, -1}), {15, 16, 17, 18, 19});
  expect_near(one("strided_slice", {x, Ints{-1, 0}, Ints{-10, 5}, Ints{-2, 4}}), {15, 19, 5, 9});
  EXPECT_EQ(one("strided_slice", {x, Ints{0, 0}, Ints{1, 3}, Ints{1, 1}, 0, 0, 0, 0, 1}).shape(), (Shape{3}));
  EXPECT_EQ(one("strided_slice", {x, Ints{0, 0, 1}, Ints{0, 0, 3}, Ints{1, 1, 1}, 0, 0, 1, 2, 0}).shape(),
            (Shape{4, 1, 2}));
  EXPECT_EQ(one("strided_slice", {x, Ints{3}, Ints{1}, Ints{1}}).shape(), (Shape{0, 5}));
  EXPECT_THROW(one("strided_slice", {x, Ints{0}, Ints{1}, Ints{0}}), Error);
  EXPECT_THROW(one("select", {x, 0, 4}), Error);
  EXPECT_THROW(one("narrow", {x, 0, 3, 2}), Error);
  expect_near(one("diagonal", {x, 1}), {1, 7, 13, 19});
  expect_near(one("diagonal", {x, -2}), {10, 16});
  EXPECT_EQ(one("diagonal", {x, 9}).size(), 0);
  expect_near(one("as_strided", {range({6}), Ints{3, 2}, Ints{1, 2}, 1}), {1, 3, 2, 4, 3, 5});
  EXPECT_THROW(one("as_strided", {range({6}), Ints{4, 3}, Ints{1, 2}, 0}), Error);
  const Values parts = call("split", {x, Ints{1, 4}, 1});
  expect_near(parts[0].tensor(), {0, 5, 10, 15});
  EXPECT_EQ(call("split", {x, 3})[1].tensor().shape(), (Shape{1, 5}));
  EXPECT_EQ(call("chunk", {x, 3})[1].tensor().shape(), (Shape{2, 5}));
  EXPECT_EQ(call("unbind", {x, 1}).size(), 5u);
  EXPECT_EQ(call("tensor_split", {x, 3})[0].tensor().shape(), (Shape{2, 5}));
  EXPECT_THROW(call("split", {x, Ints{1, 2}, 1}), Error);
}

TEST(Shape, JoinsAndRepeats) {
  const Tensor x = range({2, 2}), y = tensor({1, 2}, {8, 9}, DType::Float64);
  const Tensor joined = one("concat", {Value::List{x, y}});
  EXPECT_EQ(joined.dtype(), DType::Float64);
  expect_near(joined, {0, 1, 2, 3, 8, 9});
  expect_near(one("stack", {Value::List{x, x}, -1}), {0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_THROW(one("concat", {Value::List{x, y}, 1}), Error);
  EXPECT_THROW(one("stack", {Value::List{x, y}}), Error);
  EXPECT_THROW(one("concat", {Value::List{}}), Error);
  expect_near(one("tile", {range({2}), Ints{2, 2}}), {0, 1, 0, 1, 0, 1, 0, 1});
  expect_near(one("repeat_interleave", {x, 2, 1}), {0, 0, 1, 1, 2, 2, 3, 3});
  expect_near(one("repeat_interleave", {x, Ints{0, 2}, 0}), {2, 3, 2, 3});
  expect_near(one("repeat_interleave", {x, 2}), {0, 0, 1, 1, 2, 2, 3, 3});
  expect_near(one("repeat_interleave", {range({2}), tensor({2}, {1, 3}, DType::Int64)}), {0, 1, 1, 1});
  expect_near(one("broadcast_to", {range({2, 1}), Ints{2, 2, -1}}), {0, 1, 0, 1});
  EXPECT_THROW(one("broadcast_to", {x, Ints{3, 3}}), Error);
  const Values grids = call("meshgrid", {Value::List{range({2}), range({3})}});
  EXPECT_EQ(grids[0].tensor().shape(), (Shape{3, 2}));
  expect_near(grids[1].tensor(), {0, 0, 1, 1, 2, 2});
  expect_near(one("flip", {x, Ints{0, 1}}), {3, 2, 1, 0});
  expect_near(one("roll", {range({2, 3}), 1, 1}), {2, 0, 1, 5, 3, 4});
  expect_near(one("roll", {range({2, 2}), 1}), {3, 0, 1, 2});
  expect_near(one("tril", {range({3, 3})}), {0, 0, 0, 3, 4, 0, 6, 7, 8});
  expect_near(one("triu", {range({3, 3}), 1}), {0, 1, 2, 0, 0, 5, 0, 0, 0});
}

TEST(Shape, Padding) {
  const Tensor x = range({1, 2, 3});
  expect_near(one("pad", {x, Ints{1, 0}, "constant", 7}), {7, 0, 1, 2, 7, 3, 4, 5});
  expect_near(one("pad", {x, Ints{-1, 1}}), {1, 2, 0, 4, 5, 0});
  expect_near(one("pad", {x, Ints{2, 1}, "reflect"}), {2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  expect_near(one("pad", {x, Ints{1, 1}, "replicate"}), {0, 0, 1, 2, 2, 3, 3, 4, 5, 5});
  expect_near(one("pad", {x, Ints{1, 1}, "circular"}), {2, 0, 1, 2, 0, 5, 3, 4, 5, 3});
  EXPECT_THROW(one("pad", {x, Ints{1}}), Error);
  EXPECT_THROW(one("pad", {x, Ints{1, 1}, "other"}), Error);
}

TEST(Shape, Windows) {
  const Tensor image = range({1, 1, 3, 3});
  expect_near(one("unfold", {image, 2}), {0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8});
  EXPECT_EQ(one("unfold", {sample({2, 3, 5, 6}), Ints{2, 3}, Ints{2, 1}, Ints{1, 0}, 2}).shape(), (Shape{2, 18, 6}));
  // Each element comes back as often as a window covers it.
  expect_near(one("fold", {one("unfold", {one("ones_like", {image}), 2}), 3, 2}), {1, 2, 1, 2, 4, 2, 1, 2, 1});
  EXPECT_THROW(one("unfold", {image, 4}), Error);
  EXPECT_THROW(one("fold", {sample({1, 4, 5}), 3, 2}), Error);
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("unfold", {one("mul", {in[0], in[0]}), 2, 1, 1, Ints{1, 2}});
      },
      {sample({1, 2, 3, 4}, DType::Float64)});
  check_gradients(
      [](std::span<const Tensor> in) {
        return one("fold", {one("mul", {in[0], in[0]}), Ints{3, 4}, 2, 1, 1});
      },
      {sample({1, 4, 20}, DType::Float64)});
}

TEST(Create, Values) {
  expect_near(one("zeros", {Ints{2}}), {0, 0});
  EXPECT_EQ(one("ones", {3, DType::Int32}).dtype(), DType::Int32);
  EXPECT_EQ(one("full", {Ints{2}, 3}).dtype(), DType::Int64);
  expect_near(one("full", {Ints{2}, 1.5, DType::Float16}), {1.5, 1.5});
  expect_near(one("full_like", {sample({2}), 4}), {4, 4});
  EXPECT_THROW(one("zeros", {Ints{-1}}), Error);
  expect_near(one("arange", {3}), {0, 1, 2});
  expect_near(one("arange", {5, 0, -2}), {5, 3, 1});
  expect_near(one("arange", {0, 1, 0.25}), {0, 0.25, 0.5, 0.75});
  EXPECT_EQ(one("arange", {0, 4, 1, DType::Float32}).dtype(), DType::Float32);
  EXPECT_THROW(one("arange", {0, 4, -1}), Error);
  EXPECT_THROW(one("arange", {0, 4, 0}), Error);
  expect_near(one("linspace", {0, 1, 5}), {0, 0.25, 0.5, 0.75, 1});
  expect_near(one("logspace", {0, 2, 3}), {1, 10, 100});
  expect_near(one("eye", {2, 3}), {1, 0, 0, 0, 1, 0});
  expect_near(one("one_hot", {tensor({3}, {0, 2, 5}, DType::Int32), 3}), {1, 0, 0, 0, 0, 1, 0, 0, 0});
  expect_near(one("one_hot", {tensor({2}, {0, 1}, DType::Int32), 2, 5.0, -1.0, 0}), {5, -1, -1, 5});
  expect_near(one("diag", {range({2}), 1}), {0, 0, 0, 0, 0, 1, 0, 0, 0});
  expect_near(one("diag", {range({2, 2})}), {0, 3});
  expect_near(one("diag_embed", {range({2, 2})}), {0, 0, 0, 1, 2, 0, 0, 3});
  const Tensor z = one("complex", {tensor({1}, {1}), tensor({1}, {2})});
  EXPECT_EQ(z.dtype(), DType::Complex64);
  expect_near(one("imag", {z}), {2});
}

TEST(Copy, ConversionsAndInPlace) {
  expect_near(one("cast", {tensor({3}, {1.7, -1.7, 0}), DType::Int32}), {1, -1, 0});
  expect_near(one("cast", {tensor({3}, {1.7, -1.7, 0}), DType::Bool}), {1, 1, 0});
  const Tensor x = range({2, 3});
  EXPECT_EQ(one("cast", {x, DType::Float32}).data(), x.data());
  one("copy_", {one("narrow", {x, 1, 1, 2}), tensor({2}, {7, 8})});
  expect_near(x, {0, 7, 8, 3, 7, 8});
  one("fill_", {one("select", {x, 0, 0}), 9});
  expect_near(x, {9, 9, 9, 3, 7, 8});
  // Overlapping: the old elements are copied.
  one("copy_", {one("reshape", {x, Ints{6}}), one("flip", {one("reshape", {x, Ints{6}}), 0})});
  expect_near(x, {8, 7, 3, 9, 9, 9});
  const Tensor y = range({5});
  one("copy_", {one("narrow", {y, 0, 1, 4}), one("narrow", {y, 0, 0, 4})});
  expect_near(y, {0, 0, 1, 2, 3});
  EXPECT_THROW(one("copy_", {x, sample({4})}), Error);
  EXPECT_THROW(one("fill_", {one("broadcast_to", {tensor({1}, {0}), Ints{3}}), 1}), Error);
}

TEST(Shape, Gradients) {
  const Tensor x = sample({2, 3, 4}, DType::Float64);
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> cases = {
      {"reshape",
       [](const Tensor& t) {
         return one("reshape", {one("transpose", {t, Ints{2, 0, 1}}), Ints{6, 4}});
       }},
      {"swapaxes",
       [](const Tensor& t) {
         return one("swapaxes", {t, 0, 2});
       }},
      {"permute",
       [](const Tensor& t) {
         return one("permute", {t, Ints{1, 2, 0}});
       }},
      {"expand_dims",
       [](const Tensor& t) {
         return one("expand_dims", {t, 1});
       }},
      {"squeeze",
       [](const Tensor& t) {
         return one("squeeze", {one("narrow", {t, 0, 0, 1}), 0});
       }},
      {"broadcast_to",
       [](const Tensor& t) {
         return one("broadcast_to", {t, Ints{2, 2, 3, 4}});
       }},
      {"strided_slice",
       [](const Tensor& t) {
         return one("strided_slice", {t, Ints{0, 2}, Ints{2, -4}, Ints{1, -2}});
       }},
      {"diagonal",
       [](const Tensor& t) {
         return one("diagonal", {t, 1, 1, 2});
       }},
      {"select",
       [](const Tensor& t) {
         return one("select", {t, 1, 1});
       }},
      {"as_strided",
       [](const Tensor& t) {
         return one("as_strided", {t, Ints{4, 3}, Ints{3, 2}, 1});
       }},
      {"split",
       [](const Tensor& t) {
         return call("split", {t, Ints{1, 2}, 1})[1].tensor();
       }},
      {"unbind",
       [](const Tensor& t) {
         return call("unbind", {t, 1})[2].tensor();
       }},
      {"chunk",
       [](const Tensor& t) {
         return call("chunk", {t, 2, 2})[0].tensor();
       }},
      {"concat",
       [](const Tensor& t) {
         return one("concat", {Value::List{t, one("mul", {t, t})}, 1});
       }},
      {"stack",
       [](const Tensor& t) {
         return one("stack", {Value::List{t, one("mul", {t, t})}, 1});
       }},
      {"tile",
       [](const Tensor& t) {
         return one("tile", {t, Ints{2, 1, 3}});
       }},
      {"repeat_interleave",
       [](const Tensor& t) {
         return one("repeat_interleave", {t, Ints{1, 0, 2}, 1});
       }},
      {"flip",
       [](const Tensor& t) {
         return one("flip", {t, Ints{0, 2}});
       }},
      {"roll",
       [](const Tensor& t) {
         return one("roll", {t, Ints{1, 2}, Ints{0, 2}});
       }},
      {"tril", [](const Tensor& t) { return one("tril", {t}); }},
      {"pad",
       [](const Tensor& t) {
         return one("pad", {t, Ints{1, -1, 2, 0}});
       }},
      {"pad reflect",
       [](const Tensor& t) {
         return one("pad", {t, Ints{2, 1}, "reflect"});
       }},
      {"pad circular",
       [](const Tensor& t) {
         return one("pad", {t, Ints{2, 1}, "circular"});
       }},
      {"clone", [](const Tensor& t) { return one("clone", {t}); }},
      {"contiguous",
       [](const Tensor& t) {
         return one("contiguous", {one("transpose", {t, Ints{2, 0, 1}})});
       }},
      {"diag_embed",
       [](const Tensor& t) {
         return one("diag_embed", {t, -1});
       }},
      {"meshgrid",
       [](const Tensor& t) {
         return call("meshgrid", {Value::List{one("reshape", {t, Ints{-1}}), one("reshape", {t, Ints{-1}})}})[0]
             .tensor();
       }},
  };
  for (const auto& [name, fn] : cases) {
    SCOPED_TRACE(name);
    // Squared first, so that the second gradient is not zero.
    check_gradients([&](std::span<const Tensor> in) { return fn(one("mul", {in[0], in[0]})); }, {x});
  }
}

TEST(Shape, WritesThroughViewsAreDifferentiated) {
  const Tensor x = sample({3, 4}, DType::Float64), y = sample({4}, DType::Float64, 2);
  check_gradients(
      [](std::span<const Tensor> in) {
        const Tensor base = one("mul", {in[0], in[0]});
        const Tensor row = one("select", {base, 0, 1});
        one("copy_", {row, one("mul", {in[1], in[1]})});
        return one("mul", {base, base});
      },
      {x, y});
}

}  // namespace
}  // namespace morel
