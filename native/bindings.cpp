// What Python sees of the engine; `softcount/memory/engine.py` wraps it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>

#include "engine.h"

namespace nb = nanobind;
using namespace nb::literals;
using softcount::Engine;

template <typename T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Vector = Array<T, 1>;

namespace {

// Runs without the interpreter's lock; calls from several threads take turns.
template <typename F>
auto alone(Engine& engine, F call) {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> lock(engine.mutex);
    return call();
}

void observe(Engine& engine, Array<const float, 2> embeddings, Array<const double, 2> uniforms, Vector<double> reward,
             Vector<double> soft_count, Vector<double> d2_nearest, Vector<int64_t> nearest, Vector<bool> is_far,
             Vector<bool> is_inserted, Vector<int64_t> slot, Vector<int64_t> merged_into) {
    const size_t num = embeddings.shape(0);
    if (int(embeddings.shape(1)) != engine.settings().dim || uniforms.shape(0) != num || uniforms.shape(1) != 2)
        throw nb::value_error("embeddings or uniforms have the wrong shape");
    const softcount::Outcome out{reward.data(), soft_count.data(),  d2_nearest.data(), nearest.data(),
                                 is_far.data(), is_inserted.data(), slot.data(),       merged_into.data()};
    alone(engine, [&] { engine.observe(embeddings.data(), int64_t(num), uniforms.data(), out); });
}

void score(Engine& engine, Array<const float, 2> embeddings, Vector<double> rewards) {
    if (int(embeddings.shape(1)) != engine.settings().dim) throw nb::value_error("embeddings have the wrong shape");
    alone(engine, [&] { engine.score(embeddings.data(), int64_t(embeddings.shape(0)), rewards.data()); });
}

void load_arrays(Engine& engine, Array<const float, 2> atoms, Vector<const double> log_counts, Vector<const int64_t> births,
          int64_t num_observed, double log_scale, double d2_biased, double d2_weight) {
    const size_t n = atoms.shape(0);
    if (int64_t(n) > engine.settings().size || (n > 0 && int(atoms.shape(1)) != engine.settings().dim) ||
        log_counts.shape(0) != n || births.shape(0) != n)
        throw nb::value_error("the state does not fit this engine");
    alone(engine, [&] {
        engine.load(atoms.data(), log_counts.data(), births.data(), int64_t(n), num_observed, log_scale, d2_biased, d2_weight);
    });
}

void read_arrays(Engine& engine, Array<float, 2> atoms, Vector<double> log_counts, Vector<int64_t> births) {
    alone(engine, [&] {
        for (size_t length : {atoms.shape(0), log_counts.shape(0), births.shape(0)})
            if (int64_t(length) != engine.num_atoms) throw std::invalid_argument("the memory has grown meanwhile");
        engine.copy_atoms(atoms.data());
        std::copy_n(engine.log_counts.data(), engine.num_atoms, log_counts.data());
        std::copy_n(engine.births.data(), engine.num_atoms, births.data());
    });
}

nb::dict work(Engine& engine) {
    const softcount::Work w = alone(engine, [&] { return engine.work; });
    nb::dict counts;
    counts["num_rows_brute"] = w.num_rows_brute;
    counts["num_rows_pruned"] = w.num_rows_pruned;
    counts["num_scanned_brute"] = w.num_scanned_brute;
    counts["num_rescans"] = w.num_rescans;
    counts["num_heirs"] = w.num_heirs;
    counts["num_foreseen"] = w.num_foreseen;
    counts["num_builds"] = w.num_builds;
    counts["num_centres"] = w.pruned.num_centres;
    counts["num_groups"] = w.pruned.num_groups;
    counts["num_projected"] = w.pruned.num_projected;
    counts["num_compared"] = w.pruned.num_compared;
    return counts;
}

}  // namespace

NB_MODULE(_native, m) {
    nb::class_<Engine>(m, "Engine")
        .def(
            "__init__",
            [](Engine* self, int64_t size, int dim, int neighbours, int num_warmup, double insertion_probability,
               double far_tolerance, double d2_step, double reward_constant, double kernel_epsilon, double log_discount,
               int removal_power, int num_threads, bool only_baseline) {
                new (self) Engine({size, dim, neighbours, num_warmup, insertion_probability, far_tolerance, d2_step,
                                   reward_constant, kernel_epsilon, log_discount, removal_power, num_threads},
                                  only_baseline);
            },
            nb::kw_only(), "size"_a, "dim"_a, "neighbours"_a, "num_warmup"_a, "insertion_probability"_a, "far_tolerance"_a,
            "d2_step"_a, "reward_constant"_a, "kernel_epsilon"_a, "log_discount"_a, "removal_power"_a, "num_threads"_a,
            "only_baseline"_a)
        .def("observe", &observe)
        .def("score", &score)
        .def("load", &load_arrays)
        .def("read", &read_arrays)
        .def("work", &work)
        .def("set_path", [](Engine& engine, int path) { alone(engine, [&] { engine.set_path(softcount::Path(path)); }); })
        .def_prop_ro("num_atoms", [](Engine& engine) { return alone(engine, [&] { return engine.num_atoms; }); })
        .def_prop_ro("num_observed", [](Engine& engine) { return alone(engine, [&] { return engine.num_observed; }); })
        .def_prop_ro("log_scale", [](Engine& engine) { return alone(engine, [&] { return engine.log_scale; }); })
        .def_prop_ro("d2_biased", [](Engine& engine) { return alone(engine, [&] { return engine.d2_biased; }); })
        .def_prop_ro("d2_weight", [](Engine& engine) { return alone(engine, [&] { return engine.d2_weight; }); })
        .def_prop_ro("d2_ema", [](Engine& engine) { return alone(engine, [&] { return engine.d2_ema(); }); })
        .def_prop_ro("is_pruned", [](Engine& engine) { return alone(engine, [&] { return engine.is_pruned(); }); })
        .def_prop_ro("kernels", [](const Engine& engine) { return engine.kernels_name(); })
        .def_prop_ro("bytes", [](Engine& engine) { return alone(engine, [&] { return engine.bytes(); }); });
}
