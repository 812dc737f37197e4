"""The wheel and the sdist, on other Pythons and with other versions of scikit-learn."""
