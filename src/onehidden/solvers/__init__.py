"""How to descend; solvers know nothing of networks."""
