"""Training: Model, callbacks, metrics, checkpoints, mixed precision."""

import importlib

# Module -> the public names it defines; each is imported when first used.
_HOMES = {
    "model": ("Model",),
    "loss_scale_manager": ("LossScaleManager", "FixedLossScaleManager", "DynamicLossScaleManager"),
    "dataset_helper": ("DatasetHelper", "connect_network_with_dataset"),
    "data_sink": ("data_sink",),
    "amp": ("build_train_network",),
    "serialization": (
        "save_checkpoint",
        "load_checkpoint",
        "load_checkpoint_async",
        "load_param_into_net",
        "async_ckpt_thread_status",
        "ckpt_to_safetensors",
        "safetensors_to_ckpt",
        "export",
        "load",
        "export_split_mindir",
        "parse_print",
        "build_searched_strategy",
        "merge_sliced_parameter",
        "load_distributed_checkpoint",
        "restore_group_info_list",
        "get_ckpt_path_with_strategy",
    ),
    "callback": (
        "Callback",
        "RunContext",
        "LossMonitor",
        "TimeMonitor",
        "ModelCheckpoint",
        "CheckpointConfig",
        "EarlyStopping",
        "ReduceLROnPlateau",
        "LearningRateScheduler",
        "History",
        "LambdaCallback",
        "ProgressBar",
        "OnRequestExit",
        "SummaryCollector",
        "SummaryLandscape",
        "BackupAndRestore",
        "FlopsUtilizationCollector",
        "TrainFaultTolerance",
    ),
    "metrics": (
        "Metric",
        "Accuracy",
        "Loss",
        "TopKCategoricalAccuracy",
        "Top1CategoricalAccuracy",
        "Top5CategoricalAccuracy",
        "Precision",
        "Recall",
        "F1",
        "Fbeta",
        "MAE",
        "MSE",
        "ConfusionMatrix",
        "ConfusionMatrixMetric",
        "CosineSimilarity",
        "Perplexity",
        "Dice",
        "ROC",
        "auc",
        "BleuScore",
        "HausdorffDistance",
        "MeanSurfaceDistance",
        "RootMeanSquareDistance",
        "OcclusionSensitivity",
        "get_metric_fn",
        "names",
        "rearrange_inputs",
    ),
    "summary": ("SummaryRecord",),
}
_home_of = {name: module for module, names in _HOMES.items() for name in names}
_SUBMODULES = (*_HOMES, "amp", "callback", "metrics", "summary")
__all__ = sorted(_home_of)


def __getattr__(name):
    if name in _home_of:
        value = getattr(importlib.import_module(f"morel.train.{_home_of[name]}"), name)
    elif name in _SUBMODULES:
        return importlib.import_module(f"morel.train.{name}")
    else:
        raise AttributeError(f"module 'morel.train' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, *_SUBMODULES})
