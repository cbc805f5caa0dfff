"""A neuron that sums rectified subunits, probed with correlated stimuli.

A ganglion-cell-like response: y = Σ w relu(<filter, stimulus> - threshold) + noise, where neighbouring pixels
of the stimulus are correlated. A spike-triggered average sees only the sum of the filters; the recovered
layer shows each filter, with standard errors.
Run: python examples/subunits.py
"""

import numpy as np

import onehidden as oh

PIXELS, SUBUNITS, TRIALS = 16, 3, 4000
rng = np.random.default_rng(0)

# Subunits: local Gaussian bumps along a line of pixels, all excitatory but one.
place = np.arange(PIXELS)
centres = np.array([4.0, 8.0, 12.0])
filters = np.exp(-0.5 * ((place - centres[:, None]) / 1.5) ** 2)
neuron = oh.OneHiddenNet(filters, output=[1.0, 0.8, -0.6], bias=[-0.5, -0.2, -0.3], intercept=0.1)

# Stimuli: a smooth random line, correlation 0.8 between neighbours.
correlation = 0.8 ** np.abs(place[:, None] - place)
stimuli = rng.multivariate_normal(np.zeros(PIXELS), correlation, TRIALS)
response = neuron.predict(stimuli) + 0.05 * rng.standard_normal(TRIALS)

average = stimuli.T @ (response - response.mean()) / TRIALS  # what reverse correlation would show
r = oh.recover(stimuli, response, hidden=SUBUNITS)
match = oh.match(r.network, neuron)

print(f"status: {r.status}; noise {np.sqrt(r.noise_variance):.3f} (true 0.050)")
print(f"peaks of the spike-triggered average: pixel {int(np.argmax(np.abs(average)))} alone")
for unit, true in zip(match.permutation, centres, strict=True):
    row, error = r.network.weights[unit], r.standard_errors.weights[unit]
    print(f"subunit at pixel {true:4.1f}: found at {int(np.argmax(row)):2d}, weights ± {error.mean():.3f}")

assert r.converged, r.message
assert match.max_error < 0.15, match.max_error
for unit, true in zip(match.permutation, centres, strict=True):
    assert abs(np.argmax(r.network.weights[unit]) - true) <= 1
