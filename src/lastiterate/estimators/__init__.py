"""Private linear models with scikit-learn's habits: give epsilon and delta, fit, predict, read `report_`."""

from lastiterate.estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from lastiterate.estimators.regressors import PrivateLinearRegression

__all__ = ["PrivateLinearRegression", "PrivateLinearSVC", "PrivateLogisticRegression"]
