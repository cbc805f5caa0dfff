"""recover(): choose, start, optimise, certify; the scikit-learn estimator."""

from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import recover
from onehidden.recovery.stored import load_recovery

__all__ = ["Recovery", "load_recovery", "recover"]
