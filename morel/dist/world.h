// World: the processes that work together, and how bytes get from one to another. This process stands for one rank of
// it; in a simulated world for all of them, so that tests see what every rank would do, in one thread and always in the
// same order.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "morel/dist/mesh.h"

namespace morel::dist {

// Bytes to or from `rank`.
struct Message {
  int rank;
  void* data;
  size_t bytes;
};

class World {
 public:
  virtual ~World() = default;
  virtual int size() const = 0;
  virtual std::span<const int> local_ranks() const = 0;
  // Sends and receives all these at once; both ends know the sizes. Only between different processes.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives) = 0;
  virtual std::string_view name() const = 0;

  // Positions of a mesh that this process stands for.
  const std::vector<int>& positions(const Mesh& mesh);
  int rank() const { return local_ranks().front(); }

 private:
  std::deque<std::pair<const Mesh*, std::vector<int>>> positions_;  // stable addresses
};

// A world of `size` ranks in this process.
std::unique_ptr<World> simulated_world(int size);

// The world now; at first one of a single process.
World& world();
void set_world(std::unique_ptr<World> next);  // null: a single process again

}  // namespace morel::dist
