#include "morel/dist/store.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "morel/base/error.h"

// Messages: a command byte (s, g or a), then key and value, each with its length as 32 bits in front. Every answer is a
// value; the length `no_value` means that the time is up.
namespace morel::dist {
namespace {

constexpr uint32_t no_value = ~0u, longest = 1u << 24;

bool send_all(int socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const uint32_t length = static_cast<uint32_t>(text.size());
  return send_all(socket, &length, sizeof length) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  uint32_t length;
  if (!receive_all(socket, &length, sizeof length) || length > longest) return false;
  text.resize(length);
  return receive_all(socket, text.data(), length);
}

}  // namespace

struct StoreServer::Impl {
  int listener = -1, port = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::map<int, std::thread> clients;  // by socket
  int seen = 0, connected = 0;
  bool ending = false;

  // The value of `key`, once it is there; the request says how many milliseconds to wait.
  bool answer_get(int socket, const std::string& key, const std::string& wait) {
    std::unique_lock lock(mutex);
    const auto there = [&] { return ending || values.count(key); };
    changed.wait_for(lock, std::chrono::milliseconds(std::stoll(wait)), there);
    if (!values.count(key)) return send_all(socket, &no_value, sizeof no_value);
    return send_text(socket, values[key]);
  }
  bool answer(int socket, char command, const std::string& key, const std::string& value) {
    if (command == 'g') return answer_get(socket, key, value);
    const std::lock_guard lock(mutex);
    std::string& stored = values[key];
    stored = command == 's' ? value : std::to_string((stored.empty() ? 0 : std::stoll(stored)) + std::stoll(value));
    changed.notify_all();
    return send_text(socket, stored);
  }
  void serve(int socket) {
    char command;
    std::string key, value;
    try {
      while (receive_all(socket, &command, 1) && receive_text(socket, key) && receive_text(socket, value) &&
             answer(socket, command, key, value)) {
      }
    } catch (const std::exception&) {  // not one of our clients: numbers that are none
    }
    const std::lock_guard lock(mutex);
    --connected;
    changed.notify_all();
  }
  void accept_all() {
    while (true) {
      const int socket = ::accept(listener, nullptr, nullptr);
      const std::lock_guard lock(mutex);
      if (ending || (socket < 0 && errno != EINTR && errno != ECONNABORTED)) {
        if (socket >= 0) ::close(socket);
        return;
      }
      if (socket < 0) continue;
      ++seen;
      ++connected;
      clients[socket] = std::thread([this, socket] { serve(socket); });
    }
  }
  std::thread acceptor;
};

StoreServer::StoreServer(int port) : impl_(std::make_shared<Impl>()) {
  impl_->listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  address.sin6_port = htons(static_cast<uint16_t>(port));
  const int yes = 1, no = 0;
  ::setsockopt(impl_->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  ::setsockopt(impl_->listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  socklen_t length = sizeof address;
  const bool listens = impl_->listener >= 0 &&
                       ::bind(impl_->listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                       ::listen(impl_->listener, 128) == 0 &&
                       ::getsockname(impl_->listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!listens) {
    const std::string reason = std::strerror(errno);
    if (impl_->listener >= 0) ::close(impl_->listener);
    raise(ErrorKind::Os, "port ", port, " cannot be listened on: ", reason);
  }
  impl_->port = ntohs(address.sin6_port);
  impl_->acceptor = std::thread([impl = impl_.get()] { impl->accept_all(); });
}

StoreServer::~StoreServer() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->ending = true;
    impl_->changed.notify_all();
    ::shutdown(impl_->listener, SHUT_RDWR);
    for (auto& [socket, thread] : impl_->clients) ::shutdown(socket, SHUT_RDWR);
  }
  impl_->acceptor.join();
  for (auto& [socket, thread] : impl_->clients) {
    thread.join();
    ::close(socket);
  }
  ::close(impl_->listener);
}

int StoreServer::port() const { return impl_->port; }

void StoreServer::wait_until_done(int count) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->seen >= count && impl_->connected == 0; });
}

namespace {

int try_connect(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return -1;
  int socket = -1;
  for (const addrinfo* at = found; at && socket < 0; at = at->ai_next) {
    socket = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (socket >= 0 && ::connect(socket, at->ai_addr, at->ai_addrlen) != 0) {
      ::close(socket);
      socket = -1;
    }
  }
  ::freeaddrinfo(found);
  return socket;
}

}  // namespace

StoreClient::StoreClient(const std::string& host, int port, Timeout timeout) : socket_(-1), timeout_(timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while ((socket_ = try_connect(host, port)) < 0) {
    MOREL_CHECK(std::chrono::steady_clock::now() < end, Os, "no scheduler answers at ", host, ":", port, " after ",
                timeout.count() / 1000.0, " s; is it started, and are MS_SCHED_HOST and MS_SCHED_PORT right?");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const int yes = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

StoreClient::~StoreClient() { ::close(socket_); }

std::string StoreClient::ask(char command, const std::string& key, const std::string& value) {
  uint32_t length = 0;
  std::string answer;
  bool good = send_all(socket_, &command, 1) && send_text(socket_, key) && send_text(socket_, value) &&
              receive_all(socket_, &length, sizeof length);
  MOREL_CHECK(!good || length != no_value, Os, "no process said '", key, "' within ", timeout_.count() / 1000.0,
              " s: a process is missing or has failed");
  good = good && length <= longest;
  if (good) answer.resize(length);
  good = good && receive_all(socket_, answer.data(), length);
  MOREL_CHECK(good, Os, "the connection to the scheduler is broken");
  return answer;
}

void StoreClient::set(const std::string& key, const std::string& value) { ask('s', key, value); }
std::string StoreClient::get(const std::string& key) { return ask('g', key, std::to_string(timeout_.count())); }
int64_t StoreClient::add(const std::string& key, int64_t amount) {
  return std::stoll(ask('a', key, std::to_string(amount)));
}

}  // namespace morel::dist
