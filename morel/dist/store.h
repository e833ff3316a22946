// A small key-value store over TCP through which processes find each other: the scheduler serves it, workers use it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace morel::dist {

class StoreServer {
 public:
  explicit StoreServer(int port);  // 0: any free one
  ~StoreServer();
  int port() const;
  // Returns when `count` clients have connected and all have gone again.
  void wait_until_done(int count);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

class StoreClient {
 public:
  using Timeout = std::chrono::milliseconds;
  // Tries again until the server is there; OSError after `timeout`, which also holds for get().
  StoreClient(const std::string& host, int port, Timeout timeout);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);              // waits for the key
  int64_t add(const std::string& key, int64_t amount);  // the sum so far

 private:
  std::string ask(char command, const std::string& key, const std::string& value);
  int socket_;
  Timeout timeout_;
};

}  // namespace morel::dist
