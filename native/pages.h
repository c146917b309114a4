// Memory for what is read at random: huge pages where the system has them save most address misses.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace softcount {

constexpr size_t kHugePage = size_t(1) << 21;

// Returns zeroed memory, a multiple of 64 bytes, aligned.
inline void* take_pages(size_t bytes) {
    const size_t unit = bytes >= kHugePage ? kHugePage : 64;
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, rounded);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (unit == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    std::memset(memory, 0, rounded);
    return memory;
}

// A fixed array of floats.
class Floats {
public:
    explicit Floats(size_t count) : data_(static_cast<float*>(take_pages(count * sizeof(float) + 1))) {}
    ~Floats() { std::free(data_); }
    Floats(const Floats&) = delete;
    Floats& operator=(const Floats&) = delete;
    float* data() const { return data_; }

private:
    float* data_;
};

// Blocks of one size, handed out and taken back.
class BlockPool {
public:
    explicit BlockPool(size_t block_bytes) : block_bytes_((block_bytes + 63) / 64 * 64) {}
    ~BlockPool() {
        for (void* chunk : chunks_) std::free(chunk);
    }
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    void* take() {
        if (free_.empty()) {
            const size_t num = block_bytes_ < kHugePage ? kHugePage / block_bytes_ : 1;
            char* chunk = static_cast<char*>(take_pages(num * block_bytes_));
            chunks_.push_back(chunk);
            for (size_t i = num; i-- > 0;) free_.push_back(chunk + i * block_bytes_);
        }
        void* block = free_.back();
        free_.pop_back();
        return block;
    }

    void give(void* block) { free_.push_back(block); }

    size_t bytes() const {
        const size_t num = block_bytes_ < kHugePage ? kHugePage / block_bytes_ : 1;
        return chunks_.size() * num * block_bytes_;
    }

private:
    size_t block_bytes_;
    std::vector<void*> chunks_, free_;
};

}  // namespace softcount
