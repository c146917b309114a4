#include "groups.h"

#include <algorithm>

#include "geometry.h"
#include "group.h"

namespace softcount {

GroupIndex::GroupIndex(const float* rows, int dim, int stride, int64_t size, const Kernels& kernels)
    : rows_(rows), dim_(dim), stride_(stride), kernels_(kernels),
      pool_(sizeof(Group) + size_t(stride) * (1 + kProjected) * sizeof(float)), places_(size_t(size), Place{-1, 0}),
      survivors_(size_t(kMostBuckets * kBucket)), survivor_d2_(size_t(kMostBuckets * kBucket) + kLanes) {}

size_t GroupIndex::bytes() const {
    return pool_.bytes() + groups_.capacity() * sizeof(void*) + places_.capacity() * sizeof(Place) +
           (centre_tiles_.capacity() + 4 * centre_d2_.capacity() + survivor_d2_.capacity()) * sizeof(float) +
           survivors_.capacity() * sizeof(int32_t) + order_.capacity() * sizeof(order_[0]);
}

// ---- search ----

float GroupIndex::distance(const float* a, const float* b) const {
    float d2;
    const int32_t zero = 0;
    kernels_.row_distances(a, stride_, b, &zero, 1, &d2);
    return std::sqrt(d2);
}

// Fetches what the first test of a group reads.
void GroupIndex::prefetch(const Group& group) const {
    const char* frame = reinterpret_cast<const char*>(group.centre());
    const int bytes = stride_ * (1 + kProjected) * int(sizeof(float));
    __builtin_prefetch(&group);
    for (int i = 0; i < std::min(bytes, 2048); i += 64) __builtin_prefetch(frame + i);
}

// Fetches what its second test reads.
void GroupIndex::prefetch_boxes(const Group& group) const {
    const int bytes = (group.num_buckets + 15) / 16 * 16 * kProjected * int(sizeof(int16_t));
    for (int i = 0; i < bytes; i += 64) {
        __builtin_prefetch(reinterpret_cast<const char*>(group.bucket_low) + i);
        __builtin_prefetch(reinterpret_cast<const char*>(group.bucket_high) + i);
    }
}

void GroupIndex::search(const float* e, Candidates& found, SearchWork& work) {
    const int num = int(groups_.size());
    if (num == 0) return;
    kernels_.tile_distances(centre_tiles_.data(), (num + kLanes - 1) / kLanes, dim_, e, centre_d2_.data());
    work.num_centres += num;
    const int32_t nearest = int32_t(std::min_element(centre_d2_.begin(), centre_d2_.begin() + num) - centre_d2_.begin());
    float y[kProjected];
    // Without a threshold nothing is skipped. The nearest buckets of the nearest group give one, its other buckets a better one.
    const bool wants_neighbours = found.is_exhaustive();
    if (wants_neighbours) {
        const Group& group = *groups_[size_t(nearest)];
        kernels_.project(group.basis(stride_), stride_, group.centre(), e, y);
        const uint64_t done = seed(group, e, y, found.num_kept(), found, work);
        found.tighten();
        visit(nearest, e, done, y, found, work);
        found.tighten();
    }
    float reach = std::sqrt(found.threshold) * (1.0f + kRound);
    const float shrink = 1.0f - float(dim_ + 8) * 0x1p-23f;  // a rounded squared distance may be too large by so much
    const int count = kernels_.select(centre_d2_.data(), radii_.data(), num, shrink, reach, chosen_.data(), bounds_.data());
    order_.clear();
    for (int i = 0; i < count; ++i)
        if (!(wants_neighbours && chosen_[size_t(i)] == nearest)) order_.emplace_back(bounds_[size_t(i)], chosen_[size_t(i)]);
    // Nearest bound first: the threshold falls soonest, and the first group out of reach ends the search.
    std::sort(order_.begin(), order_.end());
    for (size_t i = 0; i < order_.size(); ++i) {
        const auto [bound, g] = order_[i];
        if (bound > reach) break;
        // Groups lie anywhere in memory: asked for early, they are there in time.
        if (i + 2 < order_.size()) prefetch(*groups_[size_t(order_[i + 2].second)]);
        if (i + 1 < order_.size()) prefetch_boxes(*groups_[size_t(order_[i + 1].second)]);
        const Group& group = *groups_[size_t(g)];
        kernels_.project(group.basis(stride_), stride_, group.centre(), e, y);
        const int32_t before = found.size;
        visit(g, e, 0, y, found, work);
        if (found.size == before) continue;
        found.tighten();
        reach = std::sqrt(found.threshold) * (1.0f + kRound);
    }
}

// Compares the atoms of the nearest buckets, enough for a first threshold; returns which buckets are done.
uint64_t GroupIndex::seed(const Group& group, const float* e, const float* y, int wanted, Candidates& found,
                          SearchWork& work) {
    float d2[kMostBuckets];
    kernels_.tile_distances(group.bucket_tiles, (group.num_buckets + kLanes - 1) / kLanes, kProjected, y, d2);
    uint64_t done = 0;
    int count = 0;
    for (int visited = 0; visited < group.num_buckets && count < wanted; ++visited) {
        int best = -1;
        for (int b = 0; b < group.num_buckets; ++b)
            if (!(done >> b & 1) && (best < 0 || d2[b] < d2[best])) best = b;
        done |= 1ull << best;
        for (int l = 0; l < group.bucket_size[best]; ++l) survivors_[size_t(count++)] = group.slots[best * kBucket + l];
    }
    work.num_projected += count;
    compare(e, count, found, work);
    return done;
}

void GroupIndex::visit(int32_t g, const float* e, uint64_t done, const float* y, Candidates& found, SearchWork& work) {
    const Group& group = *groups_[size_t(g)];
    const float extent = radii_[size_t(g)] + std::sqrt(centre_d2_[size_t(g)]);
    // Rounding may move a projected distance: errors of y_m and y_e, relative to their distances from the centre.
    const float slack = 4.0f * float(dim_ + 8) * 0x1p-24f * extent + kTiny;
    const float reach = std::sqrt(found.threshold) * (1.0f + kRound) + slack;
    work.num_groups += 1;
    const int count = kernels_.scan_group(group.view(), y, reach, done, survivors_.data(), &work.num_projected);
    compare(e, count, found, work);
}

void GroupIndex::compare(const float* e, int count, Candidates& found, SearchWork& work) {
    work.num_compared += count;
    kernels_.row_distances(rows_, stride_, e, survivors_.data(), count, survivor_d2_.data());
    for (int i = 0; i < count; ++i)
        if (survivor_d2_[size_t(i)] <= found.threshold) found.push(survivor_d2_[size_t(i)], survivors_[size_t(i)]);
}

// ---- building ----

void GroupIndex::build(int64_t n) {
    for (Group* group : groups_) pool_.give(group);
    groups_.clear();
    std::vector<int32_t> slots(static_cast<size_t>(n));
    for (int64_t s = 0; s < n; ++s) slots[size_t(s)] = int32_t(s);
    if (n > 0) split(slots.data(), n, (n + kBuiltAtoms - 1) / kBuiltAtoms);
}

// Cuts atoms into `parts` groups of nearly equal size, across the direction of largest spread.
void GroupIndex::split(int32_t* slots, int64_t count, int64_t parts) {
    if (parts == 1) {
        fill(add_group(), slots, int(count));
        return;
    }
    std::vector<double> sum(static_cast<size_t>(stride_));
    for (int64_t s = 0; s < count; ++s)
        for (int i = 0; i < stride_; ++i) sum[size_t(i)] += row(slots[s])[i];
    std::vector<float> centre(static_cast<size_t>(stride_)), direction(static_cast<size_t>(stride_));
    for (int i = 0; i < stride_; ++i) centre[size_t(i)] = float(sum[size_t(i)] / double(count));
    principal_directions(centred_sample(rows_, stride_, slots, count, 256, centre.data()), stride_, 1, 6, direction.data());
    std::vector<std::pair<float, int32_t>> along(static_cast<size_t>(count));
    for (int64_t s = 0; s < count; ++s)
        along[size_t(s)] = {dot(row(slots[s]), direction.data(), stride_), slots[s]};
    // Shared out by parts, not by halves, so that all groups end with nearly the same number of atoms.
    const int64_t left = parts / 2, middle = count * left / parts;
    std::nth_element(along.begin(), along.begin() + middle, along.end());
    for (int64_t s = 0; s < count; ++s) slots[s] = along[size_t(s)].second;
    along = {};  // the recursion below would otherwise keep one copy per level
    split(slots, middle, left);
    split(slots + middle, count - middle, parts - left);
}

// Makes a group anew from its atoms, and from `extra` if that is one; two groups if they are too many for one.
void GroupIndex::rebuild(int32_t g, int32_t extra) {
    Group& group = *groups_[size_t(g)];
    std::vector<int32_t> slots;
    for (int b = 0; b < group.num_buckets; ++b)
        slots.insert(slots.end(), group.slots + b * kBucket, group.slots + b * kBucket + group.bucket_size[b]);
    if (extra >= 0) slots.push_back(extra);
    if (int(slots.size()) <= kMostAtoms) {
        fill(g, slots.data(), int(slots.size()));
    } else {
        drop_group(g);
        split(slots.data(), int64_t(slots.size()), 2);
    }
}

// Makes the group of these atoms: centre, basis, buckets.
void GroupIndex::fill(int32_t g, const int32_t* slots, int count) {
    Group& group = *groups_[size_t(g)];
    group.num_atoms = count;
    group.num_changes = 0;
    group.num_buckets = 0;
    std::vector<double> sum(static_cast<size_t>(stride_));
    for (int s = 0; s < count; ++s)
        for (int i = 0; i < stride_; ++i) sum[size_t(i)] += row(slots[s])[i];
    for (int i = 0; i < stride_; ++i) group.centre()[i] = float(sum[size_t(i)] / count);
    principal_directions(centred_sample(rows_, stride_, slots, count, 128, group.centre()), stride_, kProjected, 4,
                         group.basis(stride_));
    std::vector<float> projected(size_t(count * kProjected));
    std::vector<int32_t> order(static_cast<size_t>(count));
    float radius = 0.0f;
    for (int s = 0; s < count; ++s) {
        float* y = &projected[size_t(s * kProjected)];
        kernels_.project(group.basis(stride_), stride_, group.centre(), row(slots[s]), y);
        radius = std::max(radius, distance(row(slots[s]), group.centre()));
        order[size_t(s)] = s;
    }
    // Rounded up: a radius that is too small would skip a group that holds a neighbour.
    radii_[size_t(g)] = radius * (1.0f + kRound + float(dim_) * 0x1p-23f) + kTiny;
    set_centre(g);
    group.set_frame(projected.data(), count);
    make_buckets(group, order.data(), count, (count + kBuiltFill - 1) / kBuiltFill, projected.data());
    for (int b = 0; b < group.num_buckets; ++b)
        for (int l = b * kBucket; l < b * kBucket + group.bucket_size[b]; ++l) {
            group.slots[l] = slots[group.slots[l]];  // until here, positions in `slots`
            places_[size_t(group.slots[l])] = {g, l};
        }
}

// Cuts the projections of `order` into buckets of nearly equal size, along the widest coordinate.
void GroupIndex::make_buckets(Group& group, int32_t* order, int count, int num_buckets, const float* projected) {
    float low[kProjected], high[kProjected], centre[kProjected] = {};
    for (int j = 0; j < kProjected; ++j) {
        low[j] = std::numeric_limits<float>::infinity();
        high[j] = -low[j];
    }
    for (int s = 0; s < count; ++s)
        for (int j = 0; j < kProjected; ++j) {
            const float y = projected[order[s] * kProjected + j];
            low[j] = std::min(low[j], y);
            high[j] = std::max(high[j], y);
            centre[j] += y;
        }
    if (num_buckets > 1) {
        int widest = 0;
        for (int j = 1; j < kProjected; ++j)
            if (high[j] - low[j] > high[widest] - low[widest]) widest = j;
        const int left = num_buckets / 2, middle = int(int64_t(count) * left / num_buckets);
        std::nth_element(order, order + middle, order + count, [=](int32_t a, int32_t b) {
            return projected[a * kProjected + widest] < projected[b * kProjected + widest];
        });
        make_buckets(group, order, middle, left, projected);
        make_buckets(group, order + middle, count - middle, num_buckets - left, projected);
        return;
    }
    const int b = group.num_buckets++;
    group.clear_bucket(b);
    group.bucket_size[b] = uint8_t(count);
    for (int j = 0; j < kProjected; ++j) group.bucket_at(b)[j * kLanes] = centre[j] / float(count);
    for (int s = 0; s < count; ++s) {
        const float* y = projected + order[s] * kProjected;
        group.slots[b * kBucket + s] = order[s];
        group.set_point(b * kBucket + s, y);
    }
}

// ---- following the memory ----

int32_t GroupIndex::add_group() {
    groups_.push_back(static_cast<Group*>(pool_.take()));
    const size_t tiles = (groups_.size() + kLanes - 1) / kLanes;
    centre_tiles_.resize(tiles * size_t(dim_) * kLanes);
    for (auto* values : {&centre_d2_, &bounds_, &radii_}) values->resize(tiles * kLanes);
    chosen_.resize(tiles * kLanes);
    return int32_t(groups_.size()) - 1;
}

void GroupIndex::set_centre(int32_t g) {
    float* tile = centre_tiles_.data() + int64_t(g / kLanes) * dim_ * kLanes + g % kLanes;
    for (int i = 0; i < dim_; ++i) tile[i * kLanes] = groups_[size_t(g)]->centre()[i];
}

// The last group takes the place of the dropped one.
void GroupIndex::drop_group(int32_t g) {
    const int32_t last = int32_t(groups_.size()) - 1;
    pool_.give(groups_[size_t(g)]);
    if (g != last) {
        groups_[size_t(g)] = groups_[size_t(last)];
        radii_[size_t(g)] = radii_[size_t(last)];
        Group& group = *groups_[size_t(g)];
        for (int b = 0; b < group.num_buckets; ++b)
            for (int l = b * kBucket; l < b * kBucket + group.bucket_size[b]; ++l) places_[size_t(group.slots[l])].group = g;
        set_centre(g);
    }
    groups_.pop_back();
}

// Gives the atoms of a small group to its neighbours: every group costs each search a comparison with its centre.
void GroupIndex::dissolve(int32_t g) {
    Group& group = *groups_[size_t(g)];
    std::vector<int32_t> slots;
    for (int b = 0; b < group.num_buckets; ++b)
        slots.insert(slots.end(), group.slots + b * kBucket, group.slots + b * kBucket + group.bucket_size[b]);
    drop_group(g);
    for (int32_t slot : slots) insert(slot);
}

int32_t GroupIndex::nearest_group(const float* e) {
    const int num = int(groups_.size());
    kernels_.tile_distances(centre_tiles_.data(), (num + kLanes - 1) / kLanes, dim_, e, centre_d2_.data());
    return int32_t(std::min_element(centre_d2_.begin(), centre_d2_.begin() + num) - centre_d2_.begin());
}

int GroupIndex::nearest_bucket(const Group& group, const float* y) {
    float d2[kMostBuckets];
    kernels_.tile_distances(group.bucket_tiles, (group.num_buckets + kLanes - 1) / kLanes, kProjected, y, d2);
    return int(std::min_element(d2, d2 + group.num_buckets) - d2);
}

void GroupIndex::insert(int32_t slot) {
    if (groups_.empty()) {
        fill(add_group(), &slot, 1);
        return;
    }
    const int32_t g = nearest_group(row(slot));
    place(g, slot);
}

// Puts an atom into a group: its nearest bucket if that has room, else a new bucket, else a rebuilt group.
void GroupIndex::place(int32_t g, int32_t slot) {
    Group& group = *groups_[size_t(g)];
    float y[kProjected];
    kernels_.project(group.basis(stride_), stride_, group.centre(), row(slot), y);
    int bucket = nearest_bucket(group, y);
    if (group.num_atoms >= kMostAtoms || (group.bucket_size[bucket] == kBucket && group.num_buckets == kMostBuckets - 1)) {
        rebuild(g, slot);
        return;
    }
    if (group.bucket_size[bucket] == kBucket) {
        bucket = group.num_buckets++;
        group.clear_bucket(bucket);
        for (int j = 0; j < kProjected; ++j) group.bucket_at(bucket)[j * kLanes] = y[j];
    }
    put(g, bucket, slot, y);
    group.num_atoms += 1;
    const float d = distance(row(slot), group.centre()) * (1.0f + kRound + float(dim_) * 0x1p-23f) + kTiny;
    radii_[size_t(g)] = std::max(radii_[size_t(g)], d);
    note_change(g, 4);
}

void GroupIndex::put(int32_t g, int bucket, int32_t slot, const float* y) {
    Group& group = *groups_[size_t(g)];
    const int lane = bucket * kBucket + group.bucket_size[bucket]++;
    group.slots[lane] = slot;
    group.set_point(lane, y);
    places_[size_t(slot)] = {g, lane};
}

// Empties an atom's lane; the last atom of the bucket moves into it.
void GroupIndex::take_out(int32_t slot) {
    const Place place = places_[size_t(slot)];
    Group& group = *groups_[size_t(place.group)];
    const int bucket = place.lane / kBucket, last = bucket * kBucket + --group.bucket_size[bucket];
    if (last == place.lane) return;
    group.slots[place.lane] = group.slots[last];
    for (int j = 0; j < kProjected; ++j) group.steps_at(place.lane)[j * kBucket] = group.steps_at(last)[j * kBucket];
    places_[size_t(group.slots[last])] = place;
}

void GroupIndex::remove(int32_t slot) {
    const int32_t g = places_[size_t(slot)].group;
    take_out(slot);
    places_[size_t(slot)] = {-1, 0};
    Group& group = *groups_[size_t(g)];
    group.num_atoms -= 1;
    if (group.num_atoms == 0)
        drop_group(g);
    else if (group.num_atoms < kFewestAtoms && groups_.size() > 1)
        dissolve(g);
    else
        note_change(g, 4);
}

// Follows an atom whose row has changed; one that leaves its group or bucket goes to the nearest.
void GroupIndex::move(int32_t slot) {
    const Place at = places_[size_t(slot)];
    Group& group = *groups_[size_t(at.group)];
    const float* e = row(slot);
    const float d = distance(e, group.centre()) * (1.0f + kRound + float(dim_) * 0x1p-23f) + kTiny;
    if (d > radii_[size_t(at.group)]) {  // a larger radius would cost every search, another group costs this atom only
        remove(slot);
        insert(slot);
        return;
    }
    float y[kProjected];
    kernels_.project(group.basis(stride_), stride_, group.centre(), e, y);
    const int bucket = at.lane / kBucket;
    if (!group.is_inside(bucket, y)) {
        const int other = nearest_bucket(group, y);
        if (other != bucket && group.bucket_size[other] < kBucket) {
            take_out(slot);
            put(at.group, other, slot, y);
            note_change(at.group, 4);
            return;
        }
    }
    group.set_point(at.lane, y);
    note_change(at.group, 1);
}

// Radii and boxes only grow, so a group that changed much skips little: it is made anew. A move within a bucket spoils less
// than an atom that comes or goes, and weighs less.
void GroupIndex::note_change(int32_t g, int weight) {
    Group& group = *groups_[size_t(g)];
    group.num_changes += weight;
    if (group.num_changes > 4 * std::max(group.num_atoms, kFewestAtoms)) rebuild(g, -1);
}

}  // namespace softcount
