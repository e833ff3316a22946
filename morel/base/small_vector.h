// A vector whose first N elements lie inside the object: shapes, strides and argument lists rarely need the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace morel {

template <class T, size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept : data_(inline_data()) {}
  explicit SmallVector(size_t count, const T& value = T()) : SmallVector() { resize(count, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector() { append(values.begin(), values.end()); }
  template <class It>
  requires std::input_iterator<It> SmallVector(It first, It last) : SmallVector() { append(first, last); }
  explicit SmallVector(std::span<const T> values) : SmallVector(values.begin(), values.end()) {}
  SmallVector(const SmallVector& other) : SmallVector() { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  ~SmallVector() { reset(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = inline_data();
      size_ = 0;
      capacity_ = N;
      take(other);
    }
    return *this;
  }

  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](size_t idx) noexcept { return data_[idx]; }
  const T& operator[](size_t idx) const noexcept { return data_[idx]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) grow(size_ + 1);
    T* place = new (data_ + size_) T(std::forward<Args>(args)...);
    ++size_;
    return *place;
  }
  void push_back(const T& value) {
    if (size_ == capacity_) {
      T copy(value);  // `value` may lie in this vector
      emplace_back(std::move(copy));
    } else {
      emplace_back(value);
    }
  }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() noexcept { data_[--size_].~T(); }
  void clear() noexcept {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void resize(size_t count, const T& value = T()) {
    reserve(count);
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back(value);
  }
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) emplace_back(*first);
  }
  void assign(size_t count, const T& value) {
    clear();
    resize(count, value);
  }
  iterator insert(const_iterator position, const T& value) {
    const size_t idx = static_cast<size_t>(position - begin());
    push_back(value);
    std::rotate(begin() + idx, end() - 1, end());
    return begin() + idx;
  }
  iterator erase(const_iterator position) {
    const size_t idx = static_cast<size_t>(position - begin());
    std::move(begin() + idx + 1, end(), begin() + idx);
    pop_back();
    return begin() + idx;
  }

  bool operator==(const SmallVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(storage_); }
  bool is_inline() const noexcept { return data_ == reinterpret_cast<const T*>(storage_); }
  void grow(size_t wanted) {
    const size_t capacity = std::max(wanted, capacity_ * 2);
    T* data = static_cast<T*>(::operator new (capacity * sizeof(T), std::align_val_t{alignof(T)}));
    std::uninitialized_move(begin(), end(), data);
    std::destroy(begin(), end());
    if (!is_inline()) ::operator delete (data_, std::align_val_t{alignof(T)});
    data_ = data;
    capacity_ = capacity;
  }
  void take(SmallVector& other) noexcept {
    if (other.is_inline()) {
      std::uninitialized_move(other.begin(), other.end(), data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }
  void reset() noexcept {
    clear();
    if (!is_inline()) ::operator delete (data_, std::align_val_t{alignof(T)});
  }

  T* data_;
  size_t size_ = 0;
  size_t capacity_ = N;
  alignas(T) std::byte storage_[N * sizeof(T)];
};

// Positions, sizes or strides of an array.
using Numbers = SmallVector<int64_t, 6>;

}  // namespace morel
