"""The theory behind onehidden: designed objectives, loss surfaces, problems with known truth, reproductions.

This package imports ``onehidden``; ``onehidden`` never imports it but by name, when a caller asks for it.

- ``laws``: known input laws, with exact scores; ``scores``: estimated ones, with the same interface.
- ``moments``: E[y S_m(x)] of rows, streams and clusters, from which the objectives and starts compute.
- ``objectives``: the objectives of the papers, as functions of (parameters, moments or rows).
- ``lab``: their landscapes and convexity, and the descent methods to explore them.
- ``problems``: the catalogue of teachers and input laws with known truth.
- ``reproductions``: figures, tables and theorems, with their stored rows; ``onehidden.papers``.
- ``starts``: the starts of ``recover`` that decompose score moments or minimise a designed objective.
- ``commands``: ``onehidden demo``, ``score``, ``problems`` and ``reproduce``.
"""
