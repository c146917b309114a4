"""The bonus in other people's loops: does it help agents that exist, and is it right?"""
