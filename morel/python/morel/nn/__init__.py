"""Neural networks: cells, layers, losses, optimizers, learning rates."""

from morel.nn import cell, dynamic_lr, layer, learning_rate_schedule, loss, optim, utils, wrap
from morel.nn.cell import Cell, GraphCell
from morel.nn.dynamic_lr import *
from morel.nn.layer import *
from morel.nn.learning_rate_schedule import *
from morel.nn.loss import *
from morel.nn.optim import *
from morel.nn.utils import no_init_parameters
from morel.nn.wrap import *

__all__ = [
    "Cell",
    "GraphCell",
    "no_init_parameters",
    *layer.__all__,
    *loss.__all__,
    *optim.__all__,
    *wrap.__all__,
    *learning_rate_schedule.__all__,
    *dynamic_lr.__all__,
]
__all__.remove("LearningRateSchedule")
_METRICS = (
    "metrics",
    "Accuracy",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "Dice",
    "F1",
    "Fbeta",
    "HausdorffDistance",
    "Loss",
    "MAE",
    "MSE",
    "MeanSurfaceDistance",
    "Metric",
    "OcclusionSensitivity",
    "Perplexity",
    "Precision",
    "ROC",
    "Recall",
    "RootMeanSquareDistance",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "BleuScore",
    "auc",
    "get_metric_fn",
    "get_metrics",
    "names",
    "rearrange_inputs",
)


def __getattr__(name):
    # The metrics live in morel.train; MindSpore offers them here too.
    if name in _METRICS:
        from morel.train import metrics

        return metrics if name == "metrics" else getattr(metrics, name)
    raise AttributeError(f"module 'morel.nn' has no attribute '{name}'")
