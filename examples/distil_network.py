"""Distil a trained scikit-learn network: read its hidden layer from questions alone.

An MLPRegressor is trained on a real table and then treated as a black box that only answers predict(). The
library chooses the questions, counts the units and returns weights to compare with the network's own.
Run: python examples/distil_network.py
"""

import warnings

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

import onehidden as oh

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = (y - y.mean()) / y.std()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # a teacher need not be fully trained
    teacher = MLPRegressor(hidden_layer_sizes=(6,), max_iter=300, random_state=0).fit(X, y)

r = oh.recover_oracle(teacher.predict, n_inputs=X.shape[1], inputs=X)
inside = oh.OneHiddenNet(
    teacher.coefs_[0].T, teacher.coefs_[1][:, 0], teacher.intercepts_[0], float(teacher.intercepts_[1][0])
)
match = oh.match(r.network, inside)
print(f"status: {r.status} after {r.queries} questions in {r.seconds:.1f} s")
print(f"{r.network.n_hidden} units found, {inside.n_hidden} inside; worst row off by {match.max_error:.1e}")
copy = r.network.to_sklearn()
gap = np.max(np.abs(copy.predict(X) - teacher.predict(X)))
print(f"the copy, as an MLPRegressor, predicts within {gap:.1e} of the teacher")

assert r.network.n_hidden == inside.n_hidden
assert match.max_error < 1e-6
assert gap < 1e-8
