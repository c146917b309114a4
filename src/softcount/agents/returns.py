"""Returns of action-value learners, and the rescaling of values they live in.

Sign-free summary (time-major; row t is o_t, a_t and the rewards of ARRIVING at o_t):

    G_t = r_{t+1} + γ (1 − terminal_{t+1}) [ V_{t+1} + λ_{t+1} (G_{t+1} − B_{t+1}) ]

    soft     λ_t = λ E_{a∼π}[ 1{Q(x_t, a_t) ≥ Q(x_t, a) − κ |Q(x_t, a)|} ],  B = V    [MEME]
    watkins  λ_t = λ 1{a_t greedy},                                          B = V
    peng     λ_t = λ,                                                        B = V
    retrace  λ_t = λ min(1, π(a_t) / μ(a_t)),                                B = Q(x_t, a_t)

The bracket stops at V_{t+1} where row t+1 is the last of an episode or of the trace.
"""
