"""V-MPO: on-policy maximum a posteriori policy optimisation."""
