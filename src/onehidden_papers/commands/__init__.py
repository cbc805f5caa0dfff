"""Commands of the terminal that need the theory: demo, problems, reproduce, score."""
