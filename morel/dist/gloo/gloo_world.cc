#include "morel/dist/gloo/gloo_world.h"

#include <mutex>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "morel/base/error.h"

namespace morel::dist {
namespace {

class Rendezvous final : public gloo::rendezvous::Store {
 public:
  explicit Rendezvous(StoreClient& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  StoreClient& store_;
};

class GlooWorld final : public World {
 public:
  explicit GlooWorld(const GlooOptions& options)
      : options_(options), ranks_{options.rank}, sent_(options.size, 0), received_(options.size, 0) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = options.host;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    context_ = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context_->setTimeout(options.timeout);
    Rendezvous store(*options.store);
    context_->connectFullMesh(store, device_);
  }
  int size() const override { return options_.size; }
  std::span<const int> local_ranks() const override { return ranks_; }
  std::string_view name() const override { return "gloo"; }

  // Both ends number the messages between them; so several exchanges may be under way.
  void exchange(std::span<const Message> sends, std::span<const Message> receives) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> incoming, outgoing;
    int waits_for = -1;
    try {
      for (const Message& message : receives) {
        incoming.push_back(context_->createUnboundBuffer(message.data, message.bytes));
        incoming.back()->recv(message.rank, slot(received_, message.rank));
      }
      for (const Message& message : sends) {
        outgoing.push_back(context_->createUnboundBuffer(message.data, message.bytes));
        outgoing.back()->send(message.rank, slot(sent_, message.rank));
      }
      for (size_t i = 0; i < incoming.size(); ++i) {
        waits_for = receives[i].rank;
        incoming[i]->waitRecv(options_.timeout);
      }
      for (size_t i = 0; i < outgoing.size(); ++i) {
        waits_for = sends[i].rank;
        outgoing[i]->waitSend(options_.timeout);
      }
    } catch (const std::exception& error) {
      const std::string whom = waits_for < 0 ? "the others"
                                             : cat("rank ", waits_for, ", in exchange ",
                                                   received_[static_cast<size_t>(waits_for)], " with it,");
      raise(ErrorKind::Runtime, "rank ", options_.rank, " waited for ", whom,
            " in vain: a process failed, or makes other calls (", error.what(), ")");
    }
  }

 private:
  static uint64_t slot(std::vector<uint64_t>& counts, int rank) { return counts[static_cast<size_t>(rank)]++; }

  GlooOptions options_;
  std::vector<int> ranks_;
  std::vector<uint64_t> sent_, received_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::mutex mutex_;
};

}  // namespace
}  // namespace morel::dist

extern "C" morel::dist::World* morel_gloo_world(const morel::dist::GlooOptions& options) {
  try {
    return new morel::dist::GlooWorld(options);
  } catch (const morel::Error&) {
    throw;
  } catch (const std::exception& error) {
    morel::raise(morel::ErrorKind::Runtime, "the processes cannot be connected: ", error.what());
  }
}
