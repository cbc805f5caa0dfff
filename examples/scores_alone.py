"""Scores without any network: how the density of a table bends, and whether an estimate of it can be trusted.

A sample from a mixture of two Gaussians, whose score functions are known: the estimates can be compared.
Run: python examples/scores_alone.py
"""

import numpy as np

import onehidden as oh

law = oh.laws.GaussianMixture([0.6, 0.4], [[1.2, 0.0], [-1.2, 0.5]], [np.eye(2), 0.5 * np.eye(2)])
X, fresh = law.sample(3000, seed=0), law.sample(3000, seed=1)
exact = law.score(fresh, 1)

errors = {}
for name, estimator in {
    "Gaussian": oh.scores.GaussianScore(),
    "mixture": oh.scores.MixtureScore(seed=0),
    "local likelihood": oh.scores.LocalLikelihood(bandwidth=0.5),
}.items():
    fitted = estimator.fit(X)
    off = fitted.score(fresh, 1) - exact
    errors[name] = float(np.sqrt(np.mean(off**2) / np.mean(exact**2)))
    checks = oh.scores.validity(fitted, fresh, orders=(1, 2))
    failed = [check.name for check in checks if not check.passed]
    print(f"{name:17} relative error of S_1 {errors[name]:.3f}; Stein's identities that fail: {len(failed)}")

assert errors["mixture"] < 0.15 < errors["Gaussian"]
S2 = oh.scores.MixtureScore(seed=0).fit(X).score(fresh, 2)
print("mean of S_2 (zero for a score):", np.abs(S2.mean(axis=0)).max().round(3))
