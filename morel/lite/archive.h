// Reader and Writer of plans: both walk through the fields that fields.h lists.
#pragma once

#include <cstring>
#include <type_traits>

#include "morel/base/file.h"
#include "morel/lite/fields.h"

namespace morel::lite {

template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <class T>
concept ListOfFields = requires(T x) {
  x.push_back(typename T::value_type{});
};

// Each call reads its arguments; nothing is read from outside of the bytes, and nothing grows faster than they do.
class Reader {
 public:
  Reader(Bytes bytes, const std::string& name, uint64_t offset) : bytes_(bytes), name_(name), offset_(offset) {}

  template <class... T>
  void operator()(T&... x) {
    (read(x), ...);
  }
  void finish() const {
    if (at_ != bytes_.size()) fail("the plan has ", bytes_.size() - at_, " bytes too many");
  }

 private:
  static constexpr int max_depth = 16;

  template <class... Args>
  [[noreturn]] void fail(const Args&... text) const {
    raise_bad_file(name_, offset_ + at_, text...);
  }
  void take(void* to, size_t count) {
    if (bytes_.size() - at_ < count) fail("the plan ends too early");
    std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
  }
  template <class T>
  void read(T& x) {
    if constexpr (is_plain<T>) {
      take(&x, sizeof x);
    } else if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte;
      take(&byte, 1);
      if (byte > 1) fail("a truth value is ", int{byte});
      x = byte;
    } else if constexpr (std::is_enum_v<T>) {
      static_assert(enum_count<T> > 0);
      uint8_t byte;
      take(&byte, 1);
      if (byte >= enum_count<T>) fail("there is no such kind: ", int{byte});
      x = static_cast<T>(byte);
    } else {
      if (++depth_ > max_depth) fail("lists are nested too deeply");
      read_compound(x);
      --depth_;
    }
  }
  uint32_t count() {
    uint32_t out;
    take(&out, sizeof out);
    if (out > bytes_.size() - at_) fail("a list of ", out, " does not fit into what follows");
    return out;
  }
  void read_compound(std::string& x) {
    x.resize(count());
    take(x.data(), x.size());
  }
  template <class T>
  void read_compound(std::optional<T>& x) {
    bool there;
    read(there);
    if (there) read(x.emplace());
  }
  template <class T>
  void read_compound(T& x) {
    if constexpr (ListOfFields<T>) {
      for (uint32_t left = count(); left > 0; --left) {
        typename T::value_type item{};
        read(item);
        x.push_back(std::move(item));
      }
    } else {
      fields(*this, x);
    }
  }

  Bytes bytes_;
  const std::string& name_;
  uint64_t offset_;  // of the bytes in the file
  size_t at_ = 0;
  int depth_ = 0;
};

class Writer {
 public:
  template <class... T>
  void operator()(T&... x) {
    (write(x), ...);
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void put(const void* from, size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  void put_count(size_t count) {
    const uint32_t number = static_cast<uint32_t>(count);
    put(&number, sizeof number);
  }
  template <class T>
  void write(T& x) {
    if constexpr (is_plain<T>) {
      put(&x, sizeof x);
    } else if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) {
      const uint8_t byte = static_cast<uint8_t>(x);
      put(&byte, 1);
    } else {
      write_compound(x);
    }
  }
  void write_compound(std::string& x) {
    put_count(x.size());
    put(x.data(), x.size());
  }
  template <class T>
  void write_compound(std::optional<T>& x) {
    bool there = x.has_value();
    write(there);
    if (there) write(*x);
  }
  template <class T>
  void write_compound(T& x) {
    if constexpr (ListOfFields<T>) {
      put_count(x.size());
      for (auto& item : x) write(item);
    } else {
      fields(*this, x);
    }
  }

  std::vector<std::byte> bytes_;
};

}  // namespace morel::lite
