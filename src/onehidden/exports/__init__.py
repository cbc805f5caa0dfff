"""A network for others to use: ONNX, PyTorch, scikit-learn, plain Python source, LaTeX."""

from __future__ import annotations

from onehidden.exports.frameworks import to_sklearn, to_torch
from onehidden.exports.graph import to_onnx
from onehidden.exports.text import to_latex, to_python

__all__ = ["to_latex", "to_onnx", "to_python", "to_sklearn", "to_torch"]
