"""Eight Rooms, our stand-in for DM-HARD-8: a physical world in first person that runs anywhere."""
