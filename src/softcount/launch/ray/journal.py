"""The journal of a memory: every request that was counted, in order, on disk before it is acted upon."""
