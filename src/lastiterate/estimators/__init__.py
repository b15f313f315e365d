"""Private linear models with scikit-learn's interface: set epsilon and delta, call fit and predict, read `report_`."""

from lastiterate.errors import worded

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(worded("library_missing", module=__name__, library="scikit-learn", extra="estimators")) from error

from lastiterate.estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from lastiterate.estimators.grid_search import PrivateGridSearchCV
from lastiterate.estimators.preparation import EachRow, PrivatePreparation
from lastiterate.estimators.regressors import PrivateLinearRegression

__all__ = [
    "EachRow",
    "PrivateGridSearchCV",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivatePreparation",
]
