// Models for devices: a converted graph gives what the executor gives, and no plan harms while it is bound.
#include <cstring>
#include <random>

#include "morel/ir/parse.h"
#include "morel/lite/archive.h"
#include "morel/lite/converter/convert.h"
#include "morel/lite/converter/requirements.h"
#include "morel/lite/model.h"
#include "morel/lite/verify.h"
#include "morel/runtime/executor.h"
#include "ops_support.h"

namespace morel::testing {
namespace {

constexpr std::string_view text = R"(graph f(%0: f32[4,6], %1: i64[], %2: i64[4,6]) captures(%3: f32[6,4]) {
  %4: f32[4,4] = matrix_product(%0, %3)
  %5: f32[4,4] = softmax_rows(%4, 0)
  %6: f32[4,4] = tanh(%5)
  %7: f32[4] = sum(%6, (1), False)
  %8: f32[4], i64[] = while(condition, body, [%7, %1], [%6])
    graph condition(%0: f32[4], %1: i64[], %2: f32[4,4]) {
      %3: bool[] = less(%1, 3)
      return %3
    }
    graph body(%0: f32[4], %1: i64[], %2: f32[4,4]) {
      %3: bool[] = less(%1, 1)
      %4: f32[4] = if(%3, then, orelse, [%0, %2])
        graph then(%0: f32[4], %1: f32[4,4]) {
          %2: f32[4] = add(%0, 1.5)
          return %2
        }
        graph orelse(%0: f32[4], %1: f32[4,4]) {
          %2: f32[4] = reduce_max(%1, (0), False)
          %3: f32[4] = mul(%0, %2)
          return %3
        }
      %5: i64[] = add(%1, 1)
      return %4, %5
    }
  %9: f32[6,4] = transpose(%0, (1, 0))
  %10: f32[4,6] = gather_elements(%0, 0, %2)
  return %8.0, %8.1, %9, %10
}
)";

struct Case {
  Ref<Graph> graph;
  std::vector<Tensor> inputs;
};

Case test_case() {
  std::mt19937 random(1);
  const auto filled = [&](const Shape& shape) {
    Tensor out = Tensor::empty(shape, DType::Float32);
    for (int64_t i = 0; i < out.size(); ++i) out.as<float>()[i] = static_cast<float>(random() % 1000) / 500 - 1;
    return out;
  };
  Tensor index = Tensor::empty({4, 6}, DType::Int64);
  for (int64_t i = 0; i < index.size(); ++i) index.as<int64_t>()[i] = static_cast<int64_t>(random() % 4);
  const Tensor weight = filled({6, 4});
  return {parse(text, [&](size_t, const Type&) { return weight; }),
          {filled({4, 6}), Tensor::full({}, DType::Int64, 0), index}};
}

std::vector<std::byte> file_of(const Graph& graph) {
  const lite::Converted made = lite::convert(graph, {});
  return lite::write_plan(made.plan, made.weights);
}

TEST(LiteModel, GivesWhatTheExecutorGives) {
  const Case s = test_case();
  const std::vector<std::byte> file = file_of(*s.graph);
  lite::Model model = lite::Model::build(Bytes(file));
  Values given;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    given.push_back(s.inputs[i]);
    std::memcpy(model.inputs()[i].data(), s.inputs[i].data(), model.inputs()[i].bytes());
  }
  const Values wanted = Executor(s.graph).run({given.data(), given.size()});
  for (int run = 0; run < 2; ++run) {
    model.predict();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(model.outputs()[i].tensor().shape(), wanted[i].tensor().shape());
      EXPECT_EQ(elements(model.outputs()[i].tensor()), elements(wanted[i].tensor())) << "output " << i;
    }
  }
}

TEST(LiteModel, TakesBuffersThatAreNotAligned) {
  const std::vector<std::byte> file = file_of(*test_case().graph);
  std::vector<std::byte> moved(file.size() + 1);
  std::memcpy(moved.data() + 1, file.data(), file.size());
  lite::Model model = lite::Model::build(Bytes(moved).subspan(1));
  moved.assign(moved.size(), std::byte{});
  const lite::Model other = std::move(model);
  EXPECT_EQ(other.inputs().size(), 3u);
  EXPECT_GT(other.arena_bytes(), 0u);
  EXPECT_THROW(other.input("nothing"), Error);
}

TEST(LiteModel, KnowsWhatItNeeds) {
  const lite::Requirements found = lite::requirements(lite::convert(*test_case().graph, {}).plan);
  std::set<std::string> kernels;
  for (const auto& [name, dtypes] : found.kernels) kernels.insert(name);
  EXPECT_EQ(kernels, (std::set<std::string>{"gather_elements", "gemm", "matrix_product"}));
  for (const char* name : {"softmax_rows.f32", "softmax_rows.f32.across", "tanh.f32", "sum.f32.f32.rows", "add.i64"})
    EXPECT_TRUE(found.loops.contains(name)) << name;
}

TEST(LiteModel, HostilePlansAreRefusedOrBoundWithinTheirMemory) {
  const lite::Converted made = lite::convert(*test_case().graph, {});
  lite::Writer writer;
  lite::Plan plan = made.plan;
  writer(plan);
  const std::string name = "x.ms";
  std::mt19937 random(1);
  int refused = 0, bound = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> bytes = writer.bytes();
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    try {
      lite::Plan changed;
      lite::Reader reader(bytes, name, 0);
      reader(changed);
      reader.finish();
      lite::verify(changed, made.weights.size(), name, 0);
      const std::vector<std::byte> file = lite::write_plan(changed, made.weights);
      const lite::Model model = lite::Model::build(Bytes(file));
      ++bound;
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(bound, 20);
}

}  // namespace
}  // namespace morel::testing
