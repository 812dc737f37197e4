"""A loss, a bound, a closer and a heuristic for exactsel."""

from exactsel_example.bound import RidgeBound
from exactsel_example.closer import LastSlot
from exactsel_example.heuristic import Screening
from exactsel_example.loss import Asymmetric

__all__ = ["Asymmetric", "LastSlot", "RidgeBound", "Screening"]
