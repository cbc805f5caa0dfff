"""What a user would reach for instead: wide-and-prune written plainly in PyTorch, scikit-learn's trainer."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import onehidden as oh

FOUND = 1e-6  # worst error asked of a peer: L-BFGS ends at 1e-7 where it has found every unit


@dataclass(frozen=True)
class PeerResult:
    """Title, seconds, loss relative to var(y), and the network it ended with."""

    title: str
    seconds: float
    loss: float
    network: oh.OneHiddenNet


def torch_wide_and_prune(
    X: np.ndarray, y: np.ndarray, k: int, width: int = 400, steps: int = 12_000, max_iter: int = 1000
) -> PeerResult:
    """The same idea, the same width, batch, rate and decay: ReLU student, Adam, merge, keep k, L-BFGS."""
    import torch

    begin = time.perf_counter()
    torch.manual_seed(0)
    n, d = X.shape
    inputs, target = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    scale = float(y.std())
    A = (torch.randn(width, d) / d**0.5).requires_grad_()
    w = (torch.randn(width) / width**0.5).requires_grad_()
    c = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.Adam([A, w, c], lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    goal = (target - target.mean()) / scale
    for _ in range(steps):
        rows = torch.randint(0, n, (512,))
        prediction = torch.relu(inputs[rows] @ A.T) @ w + c
        loss = 0.5 * torch.mean((prediction - goal[rows]) ** 2)
        loss = loss + 0.5e-3 * (torch.sum(A**2) + torch.sum(w**2))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    units = _strongest(A.detach().double().numpy(), w.detach().double().numpy(), k)
    features = np.column_stack([np.maximum(X @ units.T, 0), np.ones(n)])
    output = np.linalg.lstsq(features, (y - y.mean()) / scale, rcond=None)[0]
    network = _lbfgs(X, (y - y.mean()) / scale, units, output, max_iter)
    loss = float(np.mean((network.predict(X) - (y - y.mean()) / scale) ** 2))
    outward = oh.OneHiddenNet(
        network.weights, network.output * scale, None, network.intercept * scale + y.mean(), "relu"
    )
    title = f"PyTorch, plain wide-and-prune (width {width}, {steps} steps) + L-BFGS"
    return PeerResult(title, time.perf_counter() - begin, loss, outward)


def torch_until(
    X: np.ndarray, y: np.ndarray, k: int, reached: Callable[[oh.OneHiddenNet], bool], seconds: float
) -> PeerResult:
    """Wider and longer, attempt after attempt, until one has found every unit or the time is over."""
    spent, tried, last = 0.0, [], None
    ladder = (8 * k, 12_000), (8 * k, 30_000), (16 * k, 30_000), (32 * k, 40_000), (64 * k, 60_000)
    for width, steps in ladder:
        last = torch_wide_and_prune(X, y, k, width, steps, max_iter=4000)
        spent += last.seconds
        tried.append(f"{width} × {steps}")
        if reached(last.network) or spent > seconds:
            break
    assert last is not None
    end = "reached" if reached(last.network) else "not reached"
    title = f"PyTorch, plain wide-and-prune + L-BFGS, width × steps {', '.join(tried)}: {end}"
    return PeerResult(title, spent, last.loss, last.network)


def _strongest(A: np.ndarray, w: np.ndarray, k: int) -> np.ndarray:
    """Merge units within a cosine of 0.95, keep the k strongest."""
    norm = np.linalg.norm(A, axis=1)
    strength, unit = np.abs(w) * norm, A / norm[:, None]
    kept: list[np.ndarray] = []
    total: list[float] = []
    for i in np.argsort(-strength):
        for j, other in enumerate(kept):
            if unit[i] @ other / np.linalg.norm(other) > 0.95:
                kept[j], total[j] = other + strength[i] * unit[i], total[j] + strength[i]
                break
        else:
            kept.append(strength[i] * unit[i])
            total.append(strength[i])
    return np.array([kept[j] / np.linalg.norm(kept[j]) for j in np.argsort(total)[::-1][:k]])


def _lbfgs(
    X: np.ndarray, y: np.ndarray, units: np.ndarray, output: np.ndarray, max_iter: int
) -> oh.OneHiddenNet:
    import torch

    inputs, target = torch.tensor(X), torch.tensor(y)
    A, w, c = (torch.tensor(v).requires_grad_() for v in (units, output[:-1], output[-1]))
    optimiser = torch.optim.LBFGS(
        [A, w, c], max_iter=max_iter, tolerance_grad=1e-14, tolerance_change=1e-16, history_size=50,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure():
        optimiser.zero_grad()
        loss = torch.mean((torch.relu(inputs @ A.T) @ w + c - target) ** 2)
        loss.backward()
        return loss

    optimiser.step(closure)
    return oh.OneHiddenNet(A.detach().numpy(), w.detach().numpy(), None, float(c.detach()), "relu")


def sklearn_restarts(X: np.ndarray, y: np.ndarray, k: int, starts: int = 10) -> PeerResult:
    """MLPRegressor of the true width from random starts; the best of them."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    begin = time.perf_counter()
    best, losses = None, []
    goal = (y - y.mean()) / y.std()
    for seed in range(starts):
        model = MLPRegressor(
            hidden_layer_sizes=(k,), alpha=0.0, max_iter=200, tol=1e-8, n_iter_no_change=50, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, goal)
        losses.append(float(np.mean((model.predict(X) - goal) ** 2)))
        if losses[-1] == min(losses):
            best = model
    assert best is not None
    network = oh.OneHiddenNet(
        best.coefs_[0].T, best.coefs_[1][:, 0] * y.std(), best.intercepts_[0],
        float(best.intercepts_[1][0]) * y.std() + y.mean(), "relu",
    )  # fmt: skip
    spread = f"{min(losses):.1e} to {max(losses):.1e}"
    title = f"scikit-learn MLPRegressor of width {k}, {starts} random starts (losses {spread})"
    return PeerResult(title, time.perf_counter() - begin, min(losses), network)
