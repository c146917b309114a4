// Small mathematics without the standard library: the same bits on every machine and instruction set.
#pragma once

namespace softcount {
namespace rooms {
namespace {

constexpr float kPi = 3.14159265358979f;

inline float least(float a, float b) { return a < b ? a : b; }
inline float most(float a, float b) { return a > b ? a : b; }
inline int least(int a, int b) { return a < b ? a : b; }
inline int most(int a, int b) { return a > b ? a : b; }
inline float within(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
inline float size_of(float x) { return x < 0.0f ? -x : x; }
inline float root(float x) { return __builtin_sqrtf(x); }

// Brings an angle into [-pi, pi]; it is never far outside.
inline float wrapped(float angle) {
    while (angle > kPi) angle -= 2.0f * kPi;
    while (angle < -kPi) angle += 2.0f * kPi;
    return angle;
}

// The sine of an angle in [-2 pi, 2 pi], by its series on a quarter turn: wrong by less than 1e-6.
inline float sine(float angle) {
    float x = wrapped(angle);
    if (x > 0.5f * kPi) x = kPi - x;
    if (x < -0.5f * kPi) x = -kPi - x;
    const float x2 = x * x;
    float sum = -2.50521084e-8f;
    sum = sum * x2 + 2.75573192e-6f;
    sum = sum * x2 - 1.98412698e-4f;
    sum = sum * x2 + 8.33333333e-3f;
    sum = sum * x2 - 1.66666667e-1f;
    return x + x * x2 * sum;
}

inline float cosine(float angle) { return sine(angle + 0.5f * kPi); }

}  // namespace
}  // namespace rooms
}  // namespace softcount
