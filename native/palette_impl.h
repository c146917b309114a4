// The kernels of palette.h, in vectors of sixteen floats (GCC and Clang extension). Included by
// palette_avx512.cpp, palette_avx2.cpp and palette_baseline.cpp, which set PALETTE_NAME. No templates of the standard
// library here: a shared inline function compiled with AVX2 could be linked into the baseline.

#include <cstdlib>
#include <cstring>

#include "palette.h"

namespace softcount {
namespace {

constexpr int kBlock = 8;        // cells at a time: what is made of them stays in the first-level cache
constexpr int kLanes = 16;
constexpr int kColours = 4;      // colours that are multiplied together
constexpr int kVectors = 8;
constexpr int kTile = kVectors * kLanes;  // units whose sums are held in registers

typedef float F16 __attribute__((vector_size(64)));

inline F16 load(const float* p) {
    F16 v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, F16 v) { std::memcpy(p, &v, sizeof v); }

inline F16 splat(float x) { return F16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }

// Zeroed floats that are given back at the end of the scope.
struct Scratch {
    float* data;
    explicit Scratch(int64_t num) : data((float*)std::calloc((size_t)num, sizeof(float))) {
        if (data == nullptr) std::abort();
    }
    ~Scratch() { std::free(data); }
    Scratch(const Scratch&) = delete;
};

// Copies `num_rows` rows of `num_columns` to columns; sixteen rows at a time, so that what is read and written stays near.
void transpose(const float* from, int64_t from_stride, int num_rows, int num_columns, float* to, int64_t to_stride) {
    for (int first = 0; first < num_rows; first += kLanes) {
        const int num = num_rows - first < kLanes ? num_rows - first : kLanes;
        for (int column = 0; column < num_columns; ++column) {
            float* target = to + column * to_stride + first;
            const float* source = from + first * from_stride + column;
            for (int i = 0; i < num; ++i) target[i] = source[i * from_stride];
        }
    }
}

// What is done block by block: rows of `padded` units, a multiple of kTile, zeros beyond num_units.
struct Block {
    const PaletteLayer& layer;
    int padded;
    int first = 0, num = 0;     // cells of this block
    Scratch weight;             // [cell][channel][padded]
    Scratch coloured;           // [cell][colour][padded]: contributions, or gradients gathered by colour

    Block(const PaletteLayer& layer, int padded)
        : layer(layer),
          padded(padded),
          weight((int64_t)kBlock * layer.num_channels * padded),
          coloured((int64_t)kBlock * layer.num_colours * padded) {}

    const float* weight_of(int cell, int channel) const {
        return weight.data + ((int64_t)cell * layer.num_channels + channel) * padded;
    }

    float* coloured_of(int cell, int colour) const {
        return coloured.data + ((int64_t)cell * layer.num_colours + colour) * padded;
    }

    // Moves to the block that starts at this cell.
    void enter(int cell) {
        first = cell;
        num = layer.num_cells - cell < kBlock ? layer.num_cells - cell : kBlock;
        transpose(layer.weight + (int64_t)first * layer.num_channels, row_length(), layer.num_units, width(), weight.data,
                  padded);
    }

    int width() const { return num * layer.num_channels; }
    int64_t row_length() const { return (int64_t)layer.num_cells * layer.num_channels; }
};

int padded_units(const PaletteLayer& layer) { return (layer.num_units + kTile - 1) / kTile * kTile; }

// Fills `coloured` with what each colour contributes in each cell.
void paint(const Block& block) {
    const PaletteLayer& layer = block.layer;
    for (int cell = 0; cell < block.num; ++cell)
        for (int colour = 0; colour < layer.num_colours; ++colour) {
            const float* values = layer.table + (int64_t)colour * layer.num_channels;
            float* place = block.coloured_of(cell, colour);
            for (int u = 0; u < block.padded; u += kLanes) {
                F16 sum = splat(0.0f);
                for (int k = 0; k < layer.num_channels; ++k)
                    sum += splat(values[k]) * load(block.weight_of(cell, k) + u);
                store(place + u, sum);
            }
        }
}

void forward(const PaletteLayer& layer, const float* bias, float* out) {
    const int padded = padded_units(layer);
    Scratch sums(layer.num_rows * padded);
    for (int64_t n = 0; n < layer.num_rows; ++n)
        std::memcpy(sums.data + n * padded, bias, sizeof(float) * (size_t)layer.num_units);
    Block block(layer, padded);
    for (int first = 0; first < layer.num_cells; first += kBlock) {
        block.enter(first);
        paint(block);
        for (int tile = 0; tile < padded; tile += kTile)
            for (int64_t n = 0; n < layer.num_rows; ++n) {
                float* row = sums.data + n * padded + tile;
                const uint8_t* index = layer.index + n * layer.num_cells + first;
                F16 sum[kVectors];
                for (int v = 0; v < kVectors; ++v) sum[v] = load(row + kLanes * v);
                for (int cell = 0; cell < block.num; ++cell) {
                    const float* place = block.coloured_of(cell, index[cell]) + tile;
                    for (int v = 0; v < kVectors; ++v) sum[v] += load(place + kLanes * v);
                }
                for (int v = 0; v < kVectors; ++v) store(row + kLanes * v, sum[v]);
            }
    }
    for (int64_t n = 0; n < layer.num_rows; ++n)
        std::memcpy(out + n * layer.num_units, sums.data + n * padded, sizeof(float) * (size_t)layer.num_units);
}

// Adds up the gradients of the rows in which a cell has a colour, for every cell and colour of the block.
void gather(const Block& block, const float* grads) {
    const PaletteLayer& layer = block.layer;
    std::memset(block.coloured.data, 0,
                sizeof(float) * (size_t)block.num * (size_t)layer.num_colours * (size_t)block.padded);
    for (int tile = 0; tile < block.padded; tile += kTile)
        for (int64_t n = 0; n < layer.num_rows; ++n) {
            const uint8_t* index = layer.index + n * layer.num_cells + block.first;
            F16 grad[kVectors];
            for (int v = 0; v < kVectors; ++v) grad[v] = load(grads + n * block.padded + tile + kLanes * v);
            for (int cell = 0; cell < block.num; ++cell) {
                float* place = block.coloured_of(cell, index[cell]) + tile;
                for (int v = 0; v < kVectors; ++v) store(place + kLanes * v, load(place + kLanes * v) + grad[v]);
            }
        }
}

// Adds to the gradients of the block's weights, and of the table lane by lane, what `num` colours from `first` on give.
template <int num>
void multiply(const Block& block, int first, float* grad_weight, float* grad_table) {
    const PaletteLayer& layer = block.layer;
    for (int k = 0; k < layer.num_channels; ++k) {
        F16 sum[num], value[num];
        for (int c = 0; c < num; ++c) {
            const int64_t entry = (int64_t)(first + c) * layer.num_channels + k;
            sum[c] = load(grad_table + entry * kLanes);
            value[c] = splat(layer.table[entry]);
        }
        for (int cell = 0; cell < block.num; ++cell) {
            const float *weight = block.weight_of(cell, k), *gathered = block.coloured_of(cell, first);
            float* grad = grad_weight + ((int64_t)cell * layer.num_channels + k) * block.padded;
            for (int u = 0; u < block.padded; u += kLanes) {
                const F16 w = load(weight + u);
                F16 x = load(grad + u);
                for (int c = 0; c < num; ++c) {
                    const F16 s = load(gathered + (int64_t)c * block.padded + u);
                    x += value[c] * s;
                    sum[c] += w * s;
                }
                store(grad + u, x);
            }
        }
        for (int c = 0; c < num; ++c) store(grad_table + ((int64_t)(first + c) * layer.num_channels + k) * kLanes, sum[c]);
    }
}

void backward(const PaletteLayer& layer, const float* grad_out, float* grad_table, float* grad_weight) {
    const int padded = padded_units(layer), entries = layer.num_colours * layer.num_channels;
    Scratch grads(layer.num_rows * padded), products((int64_t)entries * kLanes);
    Scratch block_grads((int64_t)kBlock * layer.num_channels * padded);  // as Block::weight
    for (int64_t n = 0; n < layer.num_rows; ++n)
        std::memcpy(grads.data + n * padded, grad_out + n * layer.num_units, sizeof(float) * (size_t)layer.num_units);
    Block block(layer, padded);
    for (int first = 0; first < layer.num_cells; first += kBlock) {
        block.enter(first);
        gather(block, grads.data);
        int colour = 0;
        for (; colour + kColours <= layer.num_colours; colour += kColours)
            multiply<kColours>(block, colour, block_grads.data, products.data);
        for (; colour < layer.num_colours; ++colour) multiply<1>(block, colour, block_grads.data, products.data);
        transpose(block_grads.data, padded, block.width(), layer.num_units,
                  grad_weight + (int64_t)first * layer.num_channels, block.row_length());
        std::memset(block_grads.data, 0, sizeof(float) * (size_t)block.width() * (size_t)padded);
    }
    for (int i = 0; i < entries; ++i) {
        double sum = 0.0;
        for (int lane = 0; lane < kLanes; ++lane) sum += products.data[i * kLanes + lane];
        grad_table[i] = (float)sum;
    }
}

}  // namespace

extern const PaletteKernels PALETTE_NAME;
const PaletteKernels PALETTE_NAME = {PALETTE_LABEL, forward, backward};

}  // namespace softcount
