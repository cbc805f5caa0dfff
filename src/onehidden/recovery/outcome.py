"""From a certificate and a clock to the fields of a Recovery."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from onehidden.recovery.certificate import Certificate
from onehidden.recovery.clock import Clock


def certified(certificate: Certificate, clock: Clock) -> dict[str, Any]:
    """The fields of a ``Recovery`` that the certificate and the clock know."""
    return {
        "network": certificate.network,
        "status": certificate.status,
        "message": certificate.message,
        "loss": certificate.loss,
        "noise_variance": certificate.noise_variance,
        "seconds": clock.seconds(),
        "checks": certificate.checks,
        "standard_errors": certificate.standard_errors,
        "trace": clock.trace,
        "curvature": certificate.curvature,
    }


def versions() -> dict[str, str]:
    """What the answer was computed with."""
    import jax

    from onehidden import __version__

    return {
        "onehidden": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
