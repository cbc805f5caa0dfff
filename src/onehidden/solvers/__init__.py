"""How to descend: solvers that know losses and parameters, not networks."""
