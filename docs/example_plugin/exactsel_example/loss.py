"""A loss: predicting too little costs four times as much as predicting too much."""

from typing import NamedTuple

from exactsel.losses.adjusted import adjustable
from exactsel_example.checked import CheckedAsymmetric


class Asymmetric(NamedTuple):
    """Half the squared error where the prediction z is below y, an eighth of it where it is above."""

    name = "asymmetric"
    smoothness = 1.0
    infimum = 0.0

    @staticmethod
    def point_value(loss, z, y):
        return (0.5 if z < y else 0.125) * (z - y) ** 2

    @staticmethod
    def point_derivative(loss, z, y):
        return (1.0 if z < y else 0.25) * (z - y)

    @staticmethod
    def point_curvature(loss, z, y):
        return 1.0 if z < y else 0.25

    @staticmethod
    def point_majorizer(loss, z, y):
        return 1.0

    @staticmethod
    def point_prox(loss, u, step, y):
        weight = step * (1.0 if u < y else 0.25)
        return (u + weight * y) / (1.0 + weight)

    @staticmethod
    def point_conjugate(loss, b, y):
        return y * b + (0.5 if b < 0 else 2.0) * b * b

    @staticmethod
    def point_conjugate_derivative(loss, b, y):
        return y + (1.0 if b < 0 else 4.0) * b

    @staticmethod
    def point_project(loss, b, y):
        return b

    def check_target(self, y):
        """Any finite target suits."""

    def check_parameters(self):
        """There are none."""

    def checked_by(self):
        return CheckedAsymmetric()


AdjustedAsymmetric = adjustable(Asymmetric)  # no row is below zero, so weights and an intercept will do
