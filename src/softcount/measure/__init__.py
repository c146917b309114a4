"""What a run is measured by: places visited, and how right its bonus is. No agent is shown any of it."""
