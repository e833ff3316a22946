// Meshes, shardings and plans; calls on distributed tensors in a simulated world; the store of the launcher.
#include <thread>

#include "morel/dist/layer.h"
#include "morel/dist/store.h"
#include "morel/dist/trial.h"
#include "tests/cpp/ops_support.h"

namespace morel::dist {
namespace {

using loops::ReduceOp;
using morel::testing::sample;

class InWorld : public ::testing::Test {
 protected:
  void SetUp() override { set_world(simulated_world(8)); }
  void TearDown() override { set_world(nullptr); }
  const Mesh* mesh = Mesh::get({2, 4}, {"x", "y"});
};
using Meshes = InWorld;
using Plans = InWorld;
using Calls = InWorld;

TEST_F(Meshes, AreOneObjectForOneMeaning) {
  EXPECT_EQ(mesh, Mesh::get({2, 4}, {"x", "y"}, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_NE(mesh, Mesh::get({2, 4}, {"x", "z"}));
  EXPECT_EQ(Sharding::get(mesh, {{0}, {}}), Sharding::get(mesh, {{0}, {}}, {}, ReduceOp::Max));
}

TEST_F(Meshes, SayWhereTheirPositionsLie) {
  EXPECT_EQ(mesh->coordinate(6, 0), 1);
  EXPECT_EQ(mesh->coordinate(6, 1), 2);
  EXPECT_EQ(mesh->group(6, {0}), (std::vector<int>{2, 6}));
  EXPECT_EQ(mesh->group(6, {1, 0}), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(mesh->index_along(6, {1, 0}), 5);
}

TEST_F(Meshes, RefuseWhatIsNone) {
  EXPECT_THROW(Mesh::get({2, 0}, {"x", "y"}), Error);
  EXPECT_THROW(Mesh::get({2, 2}, {"x", "x"}), Error);
  EXPECT_THROW(Mesh::get({2}, {"x"}, {1, 1}), Error);
  EXPECT_THROW(Mesh::get({3}, {"x"}, {1, 2}), Error);
  EXPECT_THROW(Sharding::get(mesh, {{0}, {0}}), Error);
  EXPECT_THROW(Sharding::get(mesh, {{2}}), Error);
  EXPECT_THROW(Sharding::get(mesh, {{0}}, {0}), Error);
}

TEST_F(Meshes, CutUnevenAxesIntoPiecesOfPieces) {
  // 10 = 5 + 5 along x, each of them 2 + 2 + 1 + 0 along y.
  const Sharding* sharding = Sharding::get(mesh, {{0, 1}});
  std::vector<int64_t> starts, sizes;
  for (int position = 0; position < 8; ++position) {
    starts.push_back(sharding->box(position, {10}).start[0]);
    sizes.push_back(sharding->box(position, {10}).size[0]);
  }
  EXPECT_EQ(starts, (std::vector<int64_t>{0, 2, 4, 5, 5, 7, 9, 10}));
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 1, 0, 2, 2, 1, 0}));
}

TEST_F(Plans, MoveWhatIsMissingAndNothingElse) {
  const Shape shape{5, 7};
  const std::vector<const Sharding*> all = all_shardings(mesh, 2, false);
  for (const Sharding* from : all) {
    for (const Sharding* to : all) {
      int64_t missing = 0;
      for (int position = 0; position < mesh->size(); ++position) {
        const Box wanted = to->box(position, shape);
        missing += wanted.num_elements() - intersection(wanted, from->box(position, shape)).num_elements();
      }
      EXPECT_EQ(plan(from, to, shape).moved(), missing) << to_string(*from) << " -> " << to_string(*to);
    }
  }
}

TEST_F(Plans, KeepTheValuesAndHaveNames) {
  const Shape shape{5, 6};
  const Tensor whole = sample(shape);
  const std::vector<const Sharding*> all = all_shardings(mesh, 2, true);
  for (const Sharding* from : all)
    for (const Sharding* to : all)
      morel::testing::expect_same(full_tensor(redistribute(distribute(whole, from), to)), whole, 0);
  const auto text = [&](const AxisLists& from, const Axes& partial, const AxisLists& to) {
    return to_string(plan(Sharding::get(mesh, from, partial), Sharding::get(mesh, to), {16, 64}));
  };
  EXPECT_EQ(text({{0}, {}}, {}, {{0}, {1}}), "slice 0");
  EXPECT_EQ(text({{0}, {1}}, {}, {{0}, {}}), "all_gather 3072");
  EXPECT_EQ(text({{1}, {}}, {}, {{}, {1}}), "all_to_all 1536");
  EXPECT_EQ(text({{0}, {}}, {1}, {{0}, {1}}), "reduce_scatter 3072");
  EXPECT_EQ(text({{}, {}}, {0}, {{}, {}}), "reduce_scatter 4096, all_gather 4096");
}

TEST_F(Calls, AProductOfCutMatricesIsPartsOfASum) {
  const Tensor x = sample({6, 8}), w = sample({8, 4}, DType::Float32, 2);
  const Tensor out =
      call("matmul", {distribute(x, Sharding::get(mesh, {{0}, {1}})), distribute(w, Sharding::get(mesh, {{1}, {}}))})[0]
          .tensor();
  EXPECT_EQ(sharding_of(out), Sharding::get(mesh, {{0}, {}}, {1}));
  morel::testing::expect_same(full_tensor(out), call("matmul", {x, w})[0].tensor());
  // Parts pass through what is linear, and are added before anything else.
  EXPECT_EQ(sharding_of(call("neg", {out})[0].tensor()), sharding_of(out));
  EXPECT_TRUE(sharding_of(call("exp", {out})[0].tensor())->partial().empty());
}

TEST_F(Calls, GradientsOfPiecesAreThoseOfTheWhole) {
  const Tensor x = sample({6, 8}), w = sample({8, 4}, DType::Float32, 2);
  const testing::Function loss = [](std::span<const Tensor> in) {
    return call("tanh", {call("matmul", {in[0], in[1]})[0]})[0].tensor();
  };
  const std::vector<Tensor> wanted = testing::gradients(loss, std::vector<Tensor>{x, w});
  for (const Sharding* of_x : all_shardings(mesh, 2, false)) {
    const std::vector<Tensor> got = testing::gradients(
        loss, std::vector<Tensor>{distribute(x, of_x), distribute(w, Sharding::get(mesh, {{}, {1}}))});
    for (size_t i = 0; i < 2; ++i) testing::expect_same(full_tensor(got[i]), wanted[i]);
  }
}

TEST_F(Calls, ChangesOfViewsReachTheWhole) {
  const Tensor x = distribute(sample({4, 6}), Sharding::get(mesh, {{0}, {}}));
  const Tensor part = call("split", {x, 3, 1})[0].tensor();
  call_in_place(find_op("mul"), std::vector<Value>{part, 0.0});
  const std::vector<double> values = testing::elements(full_tensor(x));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i] == 0, i % 6 < 3);
}

TEST_F(Calls, MixedMeshesAreRefused) {
  const Tensor x = distribute(sample({4, 6}), Sharding::get(mesh, {{0}, {}}));
  const Mesh* other = Mesh::get({8}, {"z"});
  const Tensor y = distribute(sample({4, 6}), Sharding::get(other, {{0}, {}}));
  EXPECT_THROW(call("add", {x, y}), Error);
  EXPECT_THROW(x.data(), Error);
}

TEST(Store, LetsProcessesFindEachOther) {
  StoreServer server(0);
  const std::chrono::milliseconds timeout(20000);
  std::thread other([&] {
    StoreClient client("127.0.0.1", server.port(), timeout);
    EXPECT_EQ(client.get("name"), "value");
    EXPECT_EQ(client.add("count", 2), 2);
    client.set("added", "");
  });
  {
    StoreClient client("127.0.0.1", server.port(), timeout);
    client.set("name", "value");
    client.get("added");
    EXPECT_EQ(client.add("count", 3), 5);
    StoreClient hasty("127.0.0.1", server.port(), std::chrono::milliseconds(1));
    EXPECT_THROW(hasty.get("nothing"), Error);
    other.join();
  }
  server.wait_until_done(3);
}

}  // namespace
}  // namespace morel::dist
