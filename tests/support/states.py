"""The state of a run without what does not steer it."""

from mercbo import Optimizer


def without_batches(opt: Optimizer) -> dict:
    """The state, but for the division of the asks into batches and the times of the records."""
    return {k: v for k, v in opt.to_dict().items() if k not in ("batches", "metadata")}
