// What becomes one loop, and that its programs are those of the operators: interpreter, operators one by one and
// compiled code agree bit by bit (tests/python/test_graph_fusion.py has random programs).
#include "morel/transform/fuse.h"

#include <chrono>
#include <thread>

#include "morel/ir/parse.h"
#include "morel/runtime/executor.h"
#include "morel/runtime/fused.h"
#include "morel/transform/fused.h"
#include "morel/transform/graph_builder.h"
#include "morel/transform/passes.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

// A graph of two matrices x, y and a vector w as long as their rows.
template <class F>
Ref<Graph> make(const Shape& shape, DType dtype, F&& body) {
  auto graph = make_ref<Graph>();
  graph->name = "f";
  GraphBuilder builder(graph);
  const Sym x(builder, graph->add_parameter({dtype, shape})), y(builder, graph->add_parameter({dtype, shape}));
  const Sym w(builder, graph->add_parameter({dtype, {shape[1]}}));
  for (const Sym& result : Syms(body(builder, x, y, w))) graph->results.push_back(result.value());
  optimise(*graph);
  return graph;
}

std::vector<double> numbers(const Value& value) {
  const Tensor tensor = convert(contiguous(value.tensor()), DType::Float64);
  return {tensor.as<double>(), tensor.as<double>() + tensor.size()};
}

// Runs the graph's first fused node, of Rows kind, by the interpreter and compares with its body run node by node.
void expect_interpreted(const Ref<Graph>& graph, const Shape& shape, DType dtype) {
  const Ref<Graph> body(static_cast<Graph*>(graph->nodes[0]->args[0].graph()));
  const Values arguments{convert(sample(shape), dtype), convert(sample(shape), dtype),
                         convert(sample({shape[1]}), dtype)};
  const Values wanted = Executor(body).run({arguments.data(), body->parameters.size()});
  const loops::Program program = fused_program(*body);
  std::vector<Tensor> buffers;
  std::vector<char*> pointers;
  std::vector<int64_t> row_strides, strides;
  size_t input = 0, output = 0;
  for (const loops::Buffer& buffer : program.buffers) {
    if (buffer.role == loops::BufferRole::Input) buffers.push_back(arguments[input++].tensor());
    else if (buffer.scratch) buffers.push_back(Tensor::empty(shape, buffer.dtype));
    else buffers.push_back(Tensor::empty(wanted[output++].tensor().shape(), buffer.dtype));
    const Tensor& tensor = buffers.back();
    const int64_t item = size_of(buffer.dtype);
    pointers.push_back(tensor.as<char>());
    strides.push_back(item);
    const int64_t row = tensor.shape() == shape ? shape[1] : tensor.shape() == Shape{shape[1]} ? Dim(0) : Dim(1);
    row_strides.push_back(row * item);
  }
  loops::interpret(program, {shape[0], shape[1], pointers.data(), row_strides.data(), strides.data(), nullptr});
  for (size_t i = 0; i < output; ++i) EXPECT_EQ(numbers(buffers[input + i]), numbers(wanted[i])) << print(program);
}

TEST(Fuse, RowsWithPrologueAndEpilogue) {
  const auto residual_norm = [](Builder& b, const Sym& x, const Sym& y, const Sym& w) -> Syms {
    const Sym sum = x + y;
    return {sum, b("tanh", b("layer_norm", sum, Ints{40}, w, w))};
  };
  const auto graph = make({3, 40}, DType::Float32, residual_norm);
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[3,40], %1: f32[3,40], %2: f32[40]) {
  %3: f32[3,40], f32[3,40] = fused(loop, [%0, %1, %2])
    graph loop(%0: f32[3,40], %1: f32[3,40], %2: f32[40]) {
      %3: f32[3,40] = add(%0, %1)
      %4: f32[3,40], f32[3,1], f32[3,1] = layer_norm_rows(%3, %2, %2, 1e-05)
      %5: f32[3,40] = tanh(%4.0)
      return %3, %5
    }
  return %3.0, %3.1
}
)");
  expect_interpreted(graph, {3, 40}, DType::Float32);
}

TEST(Fuse, HalvesAreRoundedBetweenOperators) {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    const auto graph = make({5, 70}, dtype, [](Builder& b, const Sym& x, const Sym& y, const Sym& w) -> Syms {
      const Sym weights = b("softmax", x * 0.1 + y, -1);
      return {b("sum", weights * w, Ints{-1}, true) + weights, b("cast", weights, DType::Float32)};
    });
    ASSERT_EQ(graph->nodes.size(), 1u) << print(*graph);
    expect_interpreted(graph, {5, 70}, dtype);
  }
}

TEST(Fuse, ReductionsByHand) {
  const auto graph = make({4, 100}, DType::Float32, [](Builder& b, const Sym& x, const Sym&, const Sym& w) -> Syms {
    const Sym centred = x - b("mean", x, -1, true);
    return {centred * b("rsqrt", b("mean", centred * centred, -1, true) + 1e-5) * w};
  });
  ASSERT_EQ(graph->nodes.size(), 1u) << print(*graph);
  EXPECT_EQ(fused_program(*static_cast<Graph*>(graph->nodes[0]->args[0].graph())).num_regs, 2);
}

// Very short and very long rows are reduced in another order, which depends on what lies around them.
TEST(Fuse, RowsOfOtherOrderStayAlone) {
  for (const Shape& shape : {Shape{64, 8}, Shape{2, 70000}}) {
    const auto graph = make(shape, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym&) -> Syms {
      return {b("softmax", x, -1) * y + y};
    });
    ASSERT_EQ(graph->nodes.size(), 2u) << print(*graph);
    EXPECT_EQ(graph->nodes[0]->op->name, "softmax_rows");
  }
}

TEST(Fuse, ReductionEndsItsLoop) {
  const auto graph = make({4, 40}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym&) -> Syms {
    const Sym difference = x - y;
    return {difference, b("sum", difference, Ints{0}), b("mean", b("square", x * y))};
  });
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[4,40], %1: f32[4,40], %2: f32[40]) {
  %3: f32[4,40], f32[40] = fused(loop, [%0, %1])
    graph loop(%0: f32[4,40], %1: f32[4,40]) {
      %2: f32[4,40] = sub(%0, %1)
      %3: f32[40] = sum(%2, (0), False, None)
      return %2, %3
    }
  %4: f32[] = fused(loop, [%0, %1])
    graph loop(%0: f32[4,40], %1: f32[4,40]) {
      %2: f32[4,40] = mul(%0, %1)
      %3: f32[4,40] = square(%2)
      %4: f32[] = sum(%3, None, False, Float32)
      return %4
    }
  %5: f32[] = true_divide(%4, 160)
  return %3.0, %3.1, %5
}
)");
}

TEST(Fuse, ColumnSumsComeWithTheRows) {
  const auto graph = make({6, 50}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym& w) -> Syms {
    const Sym mean = b("sum", y, Ints{1}, true);
    const Sym all = b("layer_norm_grad", x, y, mean, mean, w);
    return {all.item(0) + x, all.item(1), all.item(2)};
  });
  EXPECT_EQ(print(*graph), R"(graph f(%0: f32[6,50], %1: f32[6,50], %2: f32[50]) {
  %3: f32[6,1] = sum(%1, (1), True, None)
  %4: f32[6,50], f32[50], f32[50] = fused(loop, [%0, %1, %3, %2])
    graph loop(%0: f32[6,50], %1: f32[6,50], %2: f32[6,1], %3: f32[50]) {
      %4: f32[6,50], f32[50], f32[50] = layer_norm_grad(%0, %1, %2, %2, %3)
      %5: f32[6,50] = add(%4.0, %0)
      return %5, %4.1, %4.2
    }
  return %4.0, %4.1, %4.2
}
)");
  const FusedLoop loop(Ref<Graph>(static_cast<Graph*>(graph->nodes[1]->args[0].graph())));
  const Tensor inputs[] = {sample({6, 50}), sample({6, 50}), sample({6, 1}), sample({50})};
  const Values given(std::begin(inputs), std::end(inputs));
  Tensor found[3];
  for (size_t i = 0; i < 3; ++i) found[i] = Tensor::empty(graph->nodes[1]->types[i].shape, DType::Float32);
  bool done = false;
  for (int i = 0; i < 2000 && !done; ++i) {  // until its code is there; never without a compiler
    done = loop.run({given.data(), given.size()}, found);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!done) GTEST_SKIP() << "nothing compiles loops here";
  const Values wanted = call("layer_norm_grad", {inputs[0], inputs[1], inputs[2], inputs[2], inputs[3]});
  EXPECT_EQ(numbers(found[0]), numbers(one("add", {wanted[0], inputs[0]})));
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(numbers(found[i]), numbers(wanted[i]));
}

TEST(Fuse, BroadcastsAreReadInTheirOwnShape) {
  const auto graph = make({3, 40}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym& w) -> Syms {
    return {b("tanh", b("broadcast_to", w, Ints{3, 40}) * x) + y};
  });
  ASSERT_EQ(graph->nodes.size(), 1u) << print(*graph);
  EXPECT_EQ(graph->nodes[0]->op->name, "fused");
}

// A product whose result others read too gives it as its last result; the reshape in between is the loop's affair.
TEST(Fuse, ElementwiseMembersFollowAProduct) {
  const auto graph = make({3, 40}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym& w) -> Syms {
    const Sym product = b("matrix_product", x, b("swapaxes", y, -1, -2));
    const Sym other = b("reshape", b("dense", x, y), Ints{1, 9});
    return {b("tanh", product) * 2.0 + 1.0, product, b("relu", other) + 0.5, b("sum", w, Ints{0})};
  });
  const std::string text = print(*graph);
  EXPECT_EQ(text, R"(graph f(%0: f32[3,40], %1: f32[3,40], %2: f32[40]) {
  %3: f32[40,3] = swapaxes(%1, -1, -2)
  %4: f32[3,3], f32[3,3] = fused(loop, [%0, %3])
    graph loop(%0: f32[3,40], %1: f32[40,3]) {
      %2: f32[3,3] = matrix_product(%0, %1)
      %3: f32[3,3] = tanh(%2)
      %4: f32[3,3] = mul(%3, 2.0)
      %5: f32[3,3] = add(%4, 1.0)
      return %5, %2
    }
  %5: f32[1,9] = fused(loop, [%0, %1])
    graph loop(%0: f32[3,40], %1: f32[3,40]) {
      %2: f32[3,3] = dense(%0, %1, None)
      %3: f32[1,9] = reshape(%2, (1, 9))
      %4: f32[1,9] = relu(%3)
      %5: f32[1,9] = add(%4, 0.5)
      return %5
    }
  %6: f32[] = sum(%2, (0), False, None)
  return %4.0, %4.1, %5, %6
}
)");
  EXPECT_EQ(print(*parse(text)), text);
  const Values arguments{sample({3, 40}), sample({3, 40}), sample({40})};
  const Values found = Executor(graph).run({arguments.data(), arguments.size()});
  const Value product = one("matmul", {arguments[0], one("swapaxes", {arguments[1], -1, -2})});
  EXPECT_EQ(numbers(found[1]), numbers(product));
  EXPECT_EQ(numbers(found[0]), numbers(one("add", {one("mul", {one("tanh", {product}), 2.0}), 1.0})));
  EXPECT_EQ(numbers(found[2]), numbers(one("add", {one("relu", {one("dense", {arguments[0], arguments[1]})}), 0.5})));
}

// What lies between a product and its loop, and would read or change what the loop does, ends the group.
TEST(Fuse, ProductsStayAlone) {
  const auto read_before = make({4, 4}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym&) -> Syms {
    const Sym product = b("matrix_product", x, y);
    return {product * b("softmax", b("matrix_product", product, y), -1)};
  });
  for (const Ref<Node>& node : read_before->nodes) EXPECT_NE(node->op->name, "fused") << print(*read_before);
  const auto rows = make({40, 40}, DType::Float32, [](Builder& b, const Sym& x, const Sym& y, const Sym&) -> Syms {
    return {b("softmax", b("matrix_product", x, y), -1) * 2.0};
  });
  ASSERT_EQ(rows->nodes.size(), 2u) << print(*rows);
  EXPECT_EQ(rows->nodes[0]->op->name, "matrix_product");
}

std::string fused_with_captures(std::string_view text) {
  const Ref<Graph> graph =
      parse(text, [](size_t idx, const Type& type) { return sample(type.shape, type.dtype, idx); });
  optimise(*graph);
  return print(*graph);
}

// Running statistics move between a normalisation and what follows it.
TEST(Fuse, NormalisationOfABatchIsWrittenOut) {
  EXPECT_EQ(fused_with_captures(R"(graph f(%0: f32[4,128,16,16]) captures(%1: f32[128], %2: f32[128], %3: f32[128]) {
  %9 = cumsum(%0, 1)
  %4 = batch_norm_training(%9, %1, %2, 1e-05)
  %5 = running_update_(%3, %4.1, 0.1, 0)
  %6 = relu(%4.0)
  return %6, %4.3
})"),
            R"(graph f(%0: f32[4,128,16,16]) captures(%1: f32[128], %2: f32[128], %3: f32[128]) {
  %4: f32[4,128,16,16] = cumsum(%0, 1, None)
  %5: f32[128], f32[128], f32[128], f32[128] = batch_norm_statistics(%4, %1, 1e-05)
  %6: f32[1,128,1,1] = reshape(%2, (1, 128, 1, 1))
  %7: f32[1,128,1,1] = reshape(%5.3, (1, 128, 1, 1))
  %8: f32[1,128,1,1] = reshape(%5.0, (1, 128, 1, 1))
  %9: f32[128] = running_update_(%3, %5.0, 0.1, 0)
  %10: f32[4,128,16,16] = fused(loop, [%4, %8, %7, %6])
    graph loop(%0: f32[4,128,16,16], %1: f32[1,128,1,1], %2: f32[1,128,1,1], %3: f32[1,128,1,1]) {
      %4: f32[4,128,16,16] = centre_scale_shift(%0, %1, %2, %3)
      %5: f32[4,128,16,16] = relu(%4)
      return %5
    }
  return %10, %5.2
}
)");
  const std::string alone = fused_with_captures(R"(graph f(%0: f32[4,128,16,16]) captures(%1: f32[128], %2: f32[128]) {
  %3 = batch_norm_training(%0, %1, %2, 1e-05)
  %4 = sum(%3.0, (2, 3))
  return %4
})");
  EXPECT_NE(alone.find("batch_norm_training"), std::string::npos) << alone;
}

TEST(Fuse, GroupsGrowPastWritesToOtherMemoryOnly) {
  const auto fused = [](std::string_view written) {
    return fused_with_captures(
               cat("graph f() captures(%0: f32[8,8], %1: f32[8,8], %2: f32[8,8]) {\n %3 = exp(%0)\n %4 = "
                   "copy_(",
                   written, ", %2)\n %5 = tanh(%3)\n return %5 }"))
               .find("fused") != std::string::npos;
  };
  EXPECT_TRUE(fused("%1"));
  EXPECT_FALSE(fused("%0"));  // what the group reads
  EXPECT_FALSE(fused("%3"));  // what it made
  const Tensor shared = sample({8});
  const Ref<Graph> graph =
      parse(R"(graph f() captures(%0: f32[8], %1: f32[8], %2: f32[8]) {
  %3 = exp(%0)
  %4 = copy_(%1, %2)
  %5 = tanh(%3)
  return %5
})",
            [&](size_t idx, const Type& type) {
              if (idx == 2) return sample(type.shape);
              return Tensor::from_storage(shared->storage, {type.shape, contiguous_strides(type.shape), 0}, type.dtype);
            });
  optimise(*graph);
  EXPECT_EQ(print(*graph).find("fused"), std::string::npos) << print(*graph);
}

}  // namespace
}  // namespace morel::testing
