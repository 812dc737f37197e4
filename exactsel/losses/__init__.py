"""Losses behind one interface; see :mod:`exactsel.losses.base`."""

from exactsel.losses.base import Loss
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.losses.quadratic import Quadratic
from exactsel.losses.squared_hinge import SquaredHinge

__all__ = ["Huber", "Logistic", "Loss", "Poisson", "Quadratic", "SquaredHinge"]
