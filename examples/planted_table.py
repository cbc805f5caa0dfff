"""A planted teacher on a real table: 442 patients, ten correlated columns, an outcome we know.

The inputs are scikit-learn's bundled diabetes table; the outcome is that of a network of two units, with
noise.
Run: python examples/planted_table.py
"""

import numpy as np
from sklearn.datasets import load_diabetes

import onehidden as oh

patients = load_diabetes(scaled=False)
names = np.array(patients.feature_names)
inputs = (patients.data - patients.data.mean(axis=0)) / patients.data.std(axis=0)
weights = np.zeros((2, inputs.shape[1]))
weights[0, [0, 2, 3, 8]] = 0.2, 0.8, 0.5, 0.3  # age, bmi, bp, s5
weights[1, [1, 3, 6, 8, 9]] = 0.1, 0.2, -0.6, 0.7, 0.3  # sex, bp, s3, s5, s6
teacher = oh.OneHiddenNet(weights, output=[1.0, -1.5], bias=[0.2, -0.3], intercept=1.0)

rng = np.random.default_rng(0)
for noise in (0.0, 0.05):
    y = teacher.predict(inputs) + noise * rng.standard_normal(len(inputs))
    r = oh.recover(inputs, y, hidden=2)
    match = oh.match(r.network, teacher)
    print(f"noise {noise}: {r.status}, worst row off by {match.max_error:.1e}")
    assert r.converged, r.message
    assert match.max_error < (1e-8 if noise == 0 else 0.3)

truth = teacher.canonical()
order = oh.match(r.network, truth).permutation
low, high = r.interval(0.99)
inside = (low.weights[order] <= truth.weights) & (truth.weights <= high.weights[order])
print(f"{inside.sum()} of {inside.size} true weights inside their 99 % intervals")
assert inside.mean() >= 0.85

strong = np.abs(r.network.weights) > 5 * r.standard_errors.weights
for i, row in enumerate(strong):
    print(f"unit {i + 1} rests on", ", ".join(names[row]))
