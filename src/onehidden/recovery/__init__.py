"""recover(): choose, start, polish, certify; the scikit-learn estimator."""

from onehidden.recovery.record import Recovery, load_recovery
from onehidden.recovery.recover import recover

__all__ = ["Recovery", "load_recovery", "recover"]
