// What Python sees of the layer over colours; `softcount/torsos/palette.py` wraps it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "palette.h"

namespace nb = nanobind;
using namespace nb::literals;

template <typename T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Index = Array<const uint8_t, 2>;
using Matrix = Array<const float, 2>;
using Result = Array<float, 2>;

namespace {

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

template <typename A>
void check_shape(const char* name, const A& array, size_t rows, size_t columns) {
    if (array.shape(0) != rows || array.shape(1) != columns)
        refuse(std::string(name) + " is " + std::to_string(array.shape(0)) + " by " + std::to_string(array.shape(1)) +
               "; expected " + std::to_string(rows) + " by " + std::to_string(columns));
}

const softcount::PaletteKernels& kernels_of(int rank) {
    const softcount::PaletteKernels* kernels = rank < 0 ? nullptr : softcount::palette_kernels(rank);
    if (kernels == nullptr) refuse("there are no kernels of rank " + std::to_string(rank));
    return *kernels;
}

softcount::PaletteLayer checked(const Index& index, const Matrix& table, const Matrix& weight) {
    check_shape("weight", weight, weight.shape(0), index.shape(1) * table.shape(1));
    if (index.size() > 0) {
        const int most = *std::max_element(index.data(), index.data() + index.size());
        if (most >= int(table.shape(0)))
            refuse("the index has " + std::to_string(most) + "; expected less than the " +
                   std::to_string(table.shape(0)) + " rows of the table");
    }
    return {int64_t(index.shape(0)), int(index.shape(1)), int(table.shape(0)), int(table.shape(1)),
            int(weight.shape(0)),    index.data(),        table.data(),        weight.data()};
}

void forward(Index index, Matrix table, Matrix weight, Array<const float, 1> bias, Result out, int rank) {
    const softcount::PaletteLayer layer = checked(index, table, weight);
    const softcount::PaletteKernels& kernels = kernels_of(rank);
    if (bias.shape(0) != weight.shape(0))
        refuse("bias has " + std::to_string(bias.shape(0)) + " units; expected " + std::to_string(weight.shape(0)));
    check_shape("out", out, index.shape(0), weight.shape(0));
    nb::gil_scoped_release release;
    kernels.forward(layer, bias.data(), out.data());
}

void backward(Index index, Matrix table, Matrix weight, Matrix grad_out, Result grad_table, Result grad_weight, int rank) {
    const softcount::PaletteLayer layer = checked(index, table, weight);
    const softcount::PaletteKernels& kernels = kernels_of(rank);
    check_shape("grad_out", grad_out, index.shape(0), weight.shape(0));
    check_shape("grad_table", grad_table, table.shape(0), table.shape(1));
    check_shape("grad_weight", grad_weight, weight.shape(0), weight.shape(1));
    nb::gil_scoped_release release;
    kernels.backward(layer, grad_out.data(), grad_table.data(), grad_weight.data());
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (int rank = 0; softcount::palette_kernels(rank) != nullptr; ++rank)
        names.push_back(softcount::palette_kernels(rank)->name);
    return names;
}

}  // namespace

// Results are written in place: an array that would have to be converted first is refused.
NB_MODULE(_palette, m) {
    m.def("forward", &forward, "index"_a, "table"_a, "weight"_a, "bias"_a, "out"_a.noconvert(), nb::kw_only(),
          "rank"_a = 0);
    m.def("backward", &backward, "index"_a, "table"_a, "weight"_a, "grad_out"_a, "grad_table"_a.noconvert(),
          "grad_weight"_a.noconvert(), nb::kw_only(), "rank"_a = 0);
    m.def("kernel_names", &kernel_names);
}
