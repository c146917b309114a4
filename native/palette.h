// A dense layer over looked-up colours, and its gradients.
//
//     out[n] = bias + Σ_cell W_cell · table[index[n][cell]]
//
// W_cell · table[c] is made once per cell and colour and then only added up: with few colours that is much less
// work than looking every cell up and multiplying, and nothing of the size rows × cells × channels is ever stored.
// One source (palette_impl.h) is compiled for AVX-512, for AVX2 and for the baseline of the platform; all give the same
// bits: sums run in order of the cells.
#pragma once

#include <cstdint>

namespace softcount {

struct PaletteLayer {
    int64_t num_rows;
    int num_cells, num_colours, num_channels, num_units;
    const uint8_t* index;  // [rows][cells], each below num_colours
    const float* table;    // [colours][channels]
    const float* weight;   // [units][cells][channels]
};

struct PaletteKernels {
    const char* name;

    // bias [units], out [rows][units]
    void (*forward)(const PaletteLayer& layer, const float* bias, float* out);

    // From the gradient of out: those of table and weight, in their shapes.
    void (*backward)(const PaletteLayer& layer, const float* grad_out, float* grad_table, float* grad_weight);
};

// The kernels that this processor can run, best first; the baseline is the last. Null beyond.
const PaletteKernels* palette_kernels(int rank);

}  // namespace softcount
