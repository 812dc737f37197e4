"""A loss, a bound and a heuristic for exactsel."""

from exactsel_example.bound import RidgeBound
from exactsel_example.heuristic import Screening
from exactsel_example.loss import Asymmetric

__all__ = ["Asymmetric", "RidgeBound", "Screening"]
