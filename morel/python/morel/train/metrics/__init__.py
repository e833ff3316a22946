"""Metrics of a network's quality."""

from morel.train.metrics import classification, confusion, error, metric
from morel.train.metrics.classification import *  # noqa: F401,F403
from morel.train.metrics.confusion import *  # noqa: F401,F403
from morel.train.metrics.error import *  # noqa: F401,F403
from morel.train.metrics.metric import *  # noqa: F401,F403

_FACTORY = {
    "F1": "F1",
    "acc": "Accuracy",
    "accuracy": "Accuracy",
    "auc": "auc",
    "bleu_score": "BleuScore",
    "confusion_matrix": "ConfusionMatrix",
    "confusion_matrix_metric": "ConfusionMatrixMetric",
    "cosine_similarity": "CosineSimilarity",
    "dice": "Dice",
    "hausdorff_distance": "HausdorffDistance",
    "loss": "Loss",
    "mae": "MAE",
    "mean_surface_distance": "MeanSurfaceDistance",
    "mse": "MSE",
    "occlusion_sensitivity": "OcclusionSensitivity",
    "perplexity": "Perplexity",
    "precision": "Precision",
    "recall": "Recall",
    "roc": "ROC",
    "root_mean_square_distance": "RootMeanSquareDistance",
    "top_1_accuracy": "Top1CategoricalAccuracy",
    "top_5_accuracy": "Top5CategoricalAccuracy",
    "topk": "TopKCategoricalAccuracy",
}
_LATER = (
    "ConfusionMatrixMetric",
    "HausdorffDistance",
    "MeanSurfaceDistance",
    "RootMeanSquareDistance",
    "OcclusionSensitivity",
)
__all__ = [
    *metric.__all__,
    *classification.__all__,
    *error.__all__,
    *confusion.__all__,
    "get_metric_fn",
    "get_metrics",
    "names",
]


def __getattr__(name):
    if name in _LATER:

        def later(*args, **kwargs):
            raise NotImplementedError(
                f"'{name}' is not supported yet; supported are "
                f"{', '.join(n for n in _FACTORY.values() if n not in _LATER)}."
            )

        later.__name__ = name
        return later
    raise AttributeError(f"module 'morel.train.metrics' has no attribute '{name}'")


def names():
    """The names that `get_metric_fn` and Model know."""
    return sorted(_FACTORY)


def get_metric_fn(name, *args, **kwargs):
    """A metric by its name.

    Args:
        name (str): one of `names()`.
        args, kwargs: arguments of the metric's class.

    Example:
        >>> from morel import train
        >>> type(train.get_metric_fn("precision", eval_type="classification")).__name__
        'Precision'
    """
    if name not in _FACTORY:
        raise KeyError(
            f"For 'get_metric_fn', unsupported metric {name}, please refer to official website for more details about "
            f"supported metrics."
        )
    cls = _FACTORY[name]
    return (globals().get(cls) or __getattr__(cls))(*args, **kwargs)


def get_metrics(metrics):
    """name -> metric object, of what Model takes as `metrics`: ``None``, a set of names, or a dict."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name, value in metrics.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"For 'get_metrics', the key in argument 'metrics' should be a string, but got {type(name)}."
                )
            if not isinstance(value, Metric):  # noqa: F405
                raise TypeError(
                    f"For 'get_metrics', the value in argument 'metrics' should be a Metric, but got {type(value)}."
                )
        return dict(metrics)
    if isinstance(metrics, set):
        return {name: get_metric_fn(name) for name in metrics}
    raise TypeError(f"For 'get_metrics', the argument 'metrics' must be None, dict or set, but got {metrics}")
