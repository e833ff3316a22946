// Intrusive reference counting: an object carries its own atomic count, a Ref<T> is one pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace morel {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  int64_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  virtual ~RefCounted() = default;
  // Frees the object; overridden where objects come from a free list.
  virtual void destroy() const noexcept { delete this; }

 private:
  mutable std::atomic<int32_t> count_{0};
};

template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  explicit Ref(T* pointer) noexcept : pointer_(pointer) {
    if (pointer_) pointer_->retain();
  }
  Ref(const Ref& other) noexcept : Ref(other.pointer_) {}
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other)
  noexcept : Ref(static_cast<T*>(other.get())) {}
  ~Ref() {
    if (pointer_) pointer_->release();
  }
  Ref& operator=(const Ref& other) noexcept {
    Ref copy(other);
    swap(copy);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    if (this != &other) {
      T* old = std::exchange(pointer_, std::exchange(other.pointer_, nullptr));
      if (old) old->release();
    }
    return *this;
  }
  void swap(Ref& other) noexcept { std::swap(pointer_, other.pointer_); }
  T* get() const noexcept { return pointer_; }
  T* operator->() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  bool operator==(const Ref& other) const noexcept { return pointer_ == other.pointer_; }
  // Gives up ownership without releasing / takes it without retaining.
  T* detach() noexcept { return std::exchange(pointer_, nullptr); }
  static Ref adopt(T* pointer) noexcept {
    Ref out;
    out.pointer_ = pointer;
    return out;
  }

 private:
  T* pointer_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace morel
