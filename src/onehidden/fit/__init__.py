"""The least-squares problem of a network: rows, parametrisation, coordinates, and its final optimisation."""
