// The pruned search: an exact index of the atoms that follows every move, insertion and removal.
//
// Atoms live in groups of at most 704 neighbours. A group knows its centre, a radius that covers
// its atoms, and an orthonormal basis of 8 directions in which its atoms differ most. Distances
// between projections never exceed distances between points, so within a group atoms are filtered
// by 8 coordinates instead of D; buckets of 16 lanes with boxes around them skip most of them.
// Real distances are computed only for what survives. Radii and boxes only grow between rebuilds
// of a group, and every bound carries slack for float32 rounding: nothing within reach is ever lost.
#pragma once

#include <vector>

#include "candidates.h"
#include "pages.h"

namespace softcount {

constexpr float kHuge = 1e15f;  // beyond this, squared distances in float32 could overflow: no index

struct SearchWork {
    int64_t num_centres = 0, num_groups = 0, num_projected = 0, num_compared = 0;
};

class GroupIndex {
public:
    GroupIndex(const float* rows, int dim, int stride, int64_t size, const Kernels& kernels);

    void build(int64_t n);
    void insert(int32_t slot);
    void remove(int32_t slot);
    void move(int32_t slot);

    // Adds to the candidates every atom that may be wanted.
    void search(const float* e, Candidates& found, SearchWork& work);

    size_t bytes() const;

private:
    struct Group;
    struct Place {
        int32_t group, lane;
    };

    const float* row(int32_t slot) const { return rows_ + int64_t(slot) * stride_; }
    void visit(int32_t g, const float* e, uint64_t done, const float* y, Candidates& found, SearchWork& work);
    uint64_t seed(const Group& group, const float* e, const float* y, int wanted, Candidates& found, SearchWork& work);
    void compare(const float* e, int count, Candidates& found, SearchWork& work);

    void split(int32_t* slots, int64_t count, int64_t parts);
    void rebuild(int32_t g, int32_t extra);
    void fill(int32_t g, const int32_t* slots, int count);
    void make_buckets(Group& group, int32_t* order, int count, int num_buckets, const float* projected);
    int32_t add_group();
    void drop_group(int32_t g);
    void dissolve(int32_t g);
    void set_centre(int32_t g);
    int32_t nearest_group(const float* e);
    void place(int32_t g, int32_t slot);
    void take_out(int32_t slot);
    int nearest_bucket(const Group& group, const float* y);
    void put(int32_t g, int bucket, int32_t slot, const float* y);
    void note_change(int32_t g, int weight);
    float distance(const float* a, const float* b) const;
    void prefetch(const Group& group) const;
    void prefetch_boxes(const Group& group) const;

    const float* rows_;
    int dim_, stride_;
    const Kernels& kernels_;
    BlockPool pool_;
    std::vector<Group*> groups_;
    std::vector<float> centre_tiles_, centre_d2_, bounds_, radii_;
    std::vector<int32_t> chosen_;
    std::vector<Place> places_;
    std::vector<int32_t> survivors_;
    std::vector<float> survivor_d2_;
    std::vector<std::pair<float, int32_t>> order_;
};

}  // namespace softcount
