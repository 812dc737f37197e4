"""scikit-learn estimators: best subsets with a certificate, in pipelines and grid searches.

from exactsel.sklearn import BestSubsetRegressor

model = BestSubsetRegressor(k=5).fit(X, y)
model.coef_, model.support_, model.lower_bound_, model.claim_
"""

try:
    import sklearn as _sklearn  # noqa: F401 (said here, once, in one sentence)
except ImportError:
    from exactsel.errors import UnsupportedError

    raise UnsupportedError("the estimators need scikit-learn; run: pip install 'exactsel[data]'.") from None

from exactsel.sklearn.crossval import BestSubsetClassifierCV, BestSubsetCV
from exactsel.sklearn.estimators import (
    BestSubsetClassifier,
    BestSubsetRegressor,
    BestSubsetSelector,
    HuberBestSubsetRegressor,
    PoissonBestSubsetRegressor,
)

__all__ = [
    "BestSubsetCV",
    "BestSubsetClassifier",
    "BestSubsetClassifierCV",
    "BestSubsetRegressor",
    "BestSubsetSelector",
    "HuberBestSubsetRegressor",
    "PoissonBestSubsetRegressor",
]
