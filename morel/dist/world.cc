#include "morel/dist/world.h"

#include <numeric>

#include "morel/base/error.h"

namespace morel::dist {
namespace {

class SimulatedWorld final : public World {
 public:
  explicit SimulatedWorld(int size) : ranks_(static_cast<size_t>(size)) { std::iota(ranks_.begin(), ranks_.end(), 0); }
  int size() const override { return static_cast<int>(ranks_.size()); }
  std::span<const int> local_ranks() const override { return ranks_; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    MOREL_ASSERT(sends.empty() && receives.empty());
  }
  std::string_view name() const override { return "simulated"; }

 private:
  std::vector<int> ranks_;
};

std::unique_ptr<World>& current() {
  // Never destroyed: threads of a transport must not be joined while the process ends.
  static auto& world = *new std::unique_ptr<World>(simulated_world(1));
  return world;
}

}  // namespace

const std::vector<int>& World::positions(const Mesh& mesh) {
  for (const auto& [known, positions] : positions_)
    if (known == &mesh) return positions;
  std::vector<int> out;
  for (const int rank : local_ranks())
    if (const int position = mesh.position_of(rank); position >= 0) out.push_back(position);
  for (const int rank : mesh.ranks())
    MOREL_CHECK(rank < size(), Value, "the mesh ", to_string(mesh), " has rank ", rank, ", but there are ", size(),
                " processes");
  // A mesh lives for ever, and so may the reference that is given back.
  return positions_.emplace_back(&mesh, std::move(out)).second;
}

std::unique_ptr<World> simulated_world(int size) {
  MOREL_CHECK(size > 0, Value, "a world needs at least one process, but got ", size);
  return std::make_unique<SimulatedWorld>(size);
}

World& world() { return *current(); }
void set_world(std::unique_ptr<World> next) { current() = next ? std::move(next) : simulated_world(1); }

}  // namespace morel::dist
