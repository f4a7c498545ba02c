"""`GAM`: `un.gam` behind scikit-learn's interface, a regressor, or a classifier where the family is binomial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from ..engine.gam_fit import gam
from ..engine.gam_predict import Prediction, Scale
from ..engine.gam_result import Gam
from ..engine.gam_saving import described, restored
from ..engine.response import FAMILIES
from ..errors import DataError, InputError, MissingLibraryError, listing, overhear, unknown, warn
from ..terms.arithmetic import is_arithmetic, needs
from ..terms.parser import parse
from ..terms.specs import Term, Terms, s

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # an extra
    raise MissingLibraryError("unnorm.sklearn needs scikit-learn: pip install 'unnorm[sklearn]'.") from error

RESPONSE = "response"  # as a formula may call it; "response_" where a feature has that name
FAR = "rows lie far outside the data"
FEW = 6  # distinct values up to which a feature is a straight line, with a ridge
SHARE = 0.8  # of the rows: at most so many functions in all, so that small tables get small bases


def _classifies(estimator: GAM) -> bool:
    if estimator.family != "binomial":
        raise AttributeError(f"predict_proba is for family='binomial'; this GAM has family={estimator.family!r}.")
    return True


@final
class GAM(BaseEstimator):
    """An additive model g(E y) = β₀ + Σ_j f_j(x), the smoothing chosen by REML.

    Parameters
    ----------
    terms: the right side of a formula, "s(x0) + te(x1, x2)", or terms; features are numbers, x0, x1, …, or the columns'
        names of a table. Labels as numbers are "factor(x0)".
        None: a cubic spline for each feature that can vanish (`cs`), and a straight line with a ridge for features of
        few values.
    family: "gaussian", "poisson", "nb", "quasipoisson": a regressor; "binomial": a classifier of two classes.
    link: of a binomial family: "logit", "probit" or "cloglog".
    method: how smoothing is chosen: "REML", "ML" or "GCV".
    k: functions of each spline that `terms=None` makes, at most; below 4, straight lines.

    Attributes
    ----------
    gam_: the fitted `unnorm.Gam`, with everything `un.gam` gives: `summary()`, `plot()`, `p_values`, `check()`.
    classes_: of a classifier.
    n_features_in_, feature_names_in_: what was fitted.

    There is no `sample_weight`: a GAM's prior weights are precisions, not repetitions of rows. Use `un.gam(weights=)`.

    >>> import numpy as np
    >>> from unnorm.sklearn import GAM
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> GAM().fit(X, np.sin(6 * X[:, 0])).score(X, np.sin(6 * X[:, 0])) > 0.99
    True
    """

    n_features_in_: int

    def __init__(
        self,
        terms: str | Term | Terms | None = None,
        family: str = "gaussian",
        *,
        link: str | None = None,
        method: str = "REML",
        k: int = 10,
    ) -> None:
        self.terms = terms
        self.family = family
        self.link = link
        self.method = method
        self.k = k

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags: Any = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.family == "binomial":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = self.family in ("poisson", "nb", "quasipoisson")
        return tags

    def fit(self, X: Any, y: Any) -> GAM:
        """Fit to features X (n, d) and the response y (n,)."""
        if self.family not in FAMILIES:
            raise InputError(unknown("family", self.family, FAMILIES))
        _check_k(self.k)
        _check_numbers(X)
        classifies = self.family == "binomial"
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=not classifies)
        if classifies:
            y = self._labels(y)
        names = self._names()
        columns = {name: X[:, j] for j, name in enumerate(names)}
        formula = _default_terms(columns, self.k) if self.terms is None else _given_terms(self.terms, names)
        response = RESPONSE
        while response in columns:
            response += "_"
        table = {**columns, response: y}
        self.gam_ = gam(formula, table, self.family, response=response, link=self.link, method=self.method)  # pyright: ignore[reportArgumentType]
        return self

    def _labels(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if kind != "binary" or self.classes_.size > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        if self.classes_.size < 2:
            raise ValueError(f"GAM can't train when only one class is present; y is {self.classes_[0]!r} in every row.")
        return codes.astype(np.float64)

    def _names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if given is None else [str(name) for name in given]

    def _columns(self, X: Any) -> Mapping[str, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return {name: X[:, j] for j, name in enumerate(self._names())}

    def _predicted(self, X: Any, kind: Scale, se: bool = False) -> Any:
        with overhear() as said:
            found = self.gam_.predict(self._columns(X), se=se, kind=kind)
        for text in said:
            if FAR not in text:  # a straight line there, as a pipeline expects; a level that is new is said
                warn(text, stacklevel=3)
        return found

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the response at each row; of a classifier the more probable class."""
        check_is_fitted(self)
        if self.family == "binomial":
            return self.classes_[(self._predicted(X, "response") > 0.5).astype(np.int64)]
        return self._predicted(X, "response")

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, 2) probabilities of the classes."""
        check_is_fitted(self)
        p = self._predicted(X, "response")
        return np.column_stack([1.0 - p, p])

    @available_if(_classifies)
    def decision_function(self, X: Any) -> np.ndarray:
        """How far the second class is more probable than not, on the scale of η."""
        check_is_fitted(self)
        centre = 0.0 if self.link != "cloglog" else float(np.log(np.log(2.0)))
        return self._predicted(X, "link") - centre

    def predict_with_errors(self, X: Any) -> Prediction[np.ndarray]:
        """The mean at each row and its standard error."""
        check_is_fitted(self)
        return self._predicted(X, "response", se=True)

    def score(self, X: Any, y: Any) -> float:
        """R² of a regressor, accuracy of a classifier."""
        from sklearn.metrics import accuracy_score, r2_score

        rate = accuracy_score if self.family == "binomial" else r2_score
        return float(rate(y, self.predict(X)))

    def __getstate__(self) -> dict[str, Any]:
        base: Any = super()
        state: dict[str, Any] = dict(base.__getstate__())
        if isinstance(state.get("gam_"), Gam):
            state["gam_"] = described(state["gam_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if isinstance(state.get("gam_"), tuple):
            state["gam_"] = restored(*state["gam_"])
        base: Any = super()
        base.__setstate__(state)


def _check_k(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of functions, at least 1; got {k!r}.")


def _check_numbers(X: Any) -> None:
    """Refuse a table's columns of text and categories: as numbers, those of a category would have a slope."""
    if not hasattr(X, "columns") or callable(X.columns):
        return
    kinds: Any = getattr(X, "dtypes", [])
    if hasattr(kinds, "items"):  # pandas
        kinds = kinds.to_list()
    wrong = [str(name) for name, kind in zip(X.columns, kinds) if str(kind).lower().startswith(("categor", "enum"))]
    if wrong:
        raise InputError(
            f"GAM takes numbers, and {listing(wrong)} are categories. Encode them first (OneHotEncoder, or "
            "OrdinalEncoder and factor(…) in terms=), or use un.gam, which reads categories."
        )


def _given_terms(given: Any, names: list[str]) -> Terms:
    """The user's terms, of the features alone: the response stands in the same table, under a name of ours."""
    terms = parse(given, table=True)
    if terms.response is not None:
        raise InputError(
            f"terms= is the right side of a formula, as y comes with fit(X, y); got the response {terms.response!r}. "
            "Leave it and the ~ out."
        )
    for column in (*terms.columns, *terms.offsets):
        for name in needs(column) if column not in names and is_arithmetic(column) else (column,):
            if name not in names:
                raise DataError(
                    f"There is no feature {name!r} (asked for by terms=); the features are {listing(names)}."
                )
    return terms


def _default_terms(columns: Mapping[str, np.ndarray], k: int) -> Terms:
    """A spline for each feature with enough values, a ridge for the rest; nothing for those that are constant."""
    n = len(next(iter(columns.values())))
    distinct = {name: np.unique(column).size for name, column in columns.items()}
    smooth = [name for name, count in distinct.items() if count > FEW]
    size = min(k, int(SHARE * n / max(len(smooth), 1)))
    terms: list[Term] = []
    for name, count in distinct.items():
        if count > FEW and size >= 4:
            terms.append(s(name, bs="cs", k=min(size, count)))
        elif count > 1:
            terms.append(s(name, bs="re"))
    return Terms(tuple(terms))
