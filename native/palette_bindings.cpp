// What Python sees of the layer over colours; `softcount/torsos/palette.py` wraps it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>

#include "palette.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

namespace {

const softcount::PaletteKernels& kernels(bool only_baseline) {
    return only_baseline ? softcount::baseline_palette_kernels() : softcount::best_palette_kernels();
}

softcount::PaletteLayer checked(Array<const uint8_t, 2> index, Array<const float, 2> table,
                                Array<const float, 2> weight) {
    if (weight.shape(1) != index.shape(1) * table.shape(1)) throw nb::value_error("weight does not fit index and table");
    const uint8_t* end = index.data() + index.size();
    if (index.size() > 0 && *std::max_element(index.data(), end) >= table.shape(0))
        throw nb::value_error("index goes beyond the table");
    return {int64_t(index.shape(0)), int(index.shape(1)), int(table.shape(0)), int(table.shape(1)),
            int(weight.shape(0)),    index.data(),        table.data(),        weight.data()};
}

void forward(Array<const uint8_t, 2> index, Array<const float, 2> table, Array<const float, 2> weight,
             Array<const float, 1> bias, Array<float, 2> out, bool only_baseline) {
    const softcount::PaletteLayer layer = checked(index, table, weight);
    if (bias.shape(0) != weight.shape(0) || out.shape(0) != index.shape(0) || out.shape(1) != weight.shape(0))
        throw nb::value_error("bias or out have the wrong shape");
    nb::gil_scoped_release release;
    kernels(only_baseline).forward(layer, bias.data(), out.data());
}

void backward(Array<const uint8_t, 2> index, Array<const float, 2> table, Array<const float, 2> weight,
              Array<const float, 2> grad_out, Array<float, 2> grad_table, Array<float, 2> grad_weight,
              bool only_baseline) {
    const softcount::PaletteLayer layer = checked(index, table, weight);
    if (grad_out.shape(0) != index.shape(0) || grad_out.shape(1) != weight.shape(0) ||
        grad_table.shape(0) != table.shape(0) || grad_table.shape(1) != table.shape(1) ||
        grad_weight.shape(0) != weight.shape(0) || grad_weight.shape(1) != weight.shape(1))
        throw nb::value_error("gradients have the wrong shape");
    nb::gil_scoped_release release;
    kernels(only_baseline).backward(layer, grad_out.data(), grad_table.data(), grad_weight.data());
}

}  // namespace

NB_MODULE(_palette, m) {
    m.def("forward", &forward, "index"_a, "table"_a, "weight"_a, "bias"_a, "out"_a, nb::kw_only(),
          "only_baseline"_a = false);
    m.def("backward", &backward, "index"_a, "table"_a, "weight"_a, "grad_out"_a, "grad_table"_a, "grad_weight"_a,
          nb::kw_only(), "only_baseline"_a = false);
}
