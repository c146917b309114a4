"""Memories and representations on recorded or made streams, without an agent that acts on them."""
