// What libmorel_gloo.so gives: a world of processes that talk over TCP.
#pragma once

#include <chrono>
#include <memory>

#include "morel/dist/store.h"
#include "morel/dist/world.h"

namespace morel::dist {

struct GlooOptions {
  int rank = 0, size = 1;
  std::string host;  // name or address of this machine, as others reach it; empty: its host name
  std::shared_ptr<StoreClient> store;
  std::chrono::milliseconds timeout;
};

using GlooEntry = World* (*)(const GlooOptions& options);
inline constexpr const char* gloo_symbol = "morel_gloo_world";

}  // namespace morel::dist
