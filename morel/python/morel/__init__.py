"""Morel: a deep-learning framework with MindSpore's API.

Sub-modules are imported when first used, so that ``import morel`` costs next to nothing.
"""

from morel import _core
from morel.common.dtype import *  # noqa: F403
from morel.common.dtype import __all__ as _dtype_names
from morel.common.tensor import Tensor, tensor

__version__ = _core.version

# Public name -> module that defines it.
_LAZY = {
    "Parameter": "morel.common.parameter",
    "ParameterTuple": "morel.common.parameter",
    "GRAPH_MODE": "morel.context",
    "PYNATIVE_MODE": "morel.context",
    "set_context": "morel.context",
    "get_context": "morel.context",
    "set_device": "morel.context",
    "set_recursion_limit": "morel.context",
    "get_current_device": "morel.context",
    "context": "morel",
    "set_auto_parallel_context": "morel.context",
    "get_auto_parallel_context": "morel.context",
    "reset_auto_parallel_context": "morel.context",
    "set_deterministic": "morel.context",
    "set_seed": "morel.common.seed",
    "get_seed": "morel.common.seed",
    "dtype": "morel.common",
    "grad": "morel.ops.autograd",
    "value_and_grad": "morel.ops.autograd",
    "get_grad": "morel.ops.autograd",
    "jacfwd": "morel.ops.jacobian",
    "jacrev": "morel.ops.jacobian",
    "jvp": "morel.ops.jacobian",
    "vjp": "morel.ops.jacobian",
    "vmap": "morel.ops.vectorisation",
    "save_checkpoint": "morel.train.serialization",
    "load_checkpoint": "morel.train.serialization",
    "load_param_into_net": "morel.train.serialization",
    "load_checkpoint_async": "morel.train.serialization",
    "export": "morel.train.serialization",
    "load": "morel.train.serialization",
    "Model": "morel.train",
    "run_check": "morel.run_check",
    "jit": "morel.common.api",
    "ms_function": "morel.common.api",
    "Profiler": "morel.profiler",
    "_no_grad": "morel.common.api",
    "jit_class": "morel.common.api",
    "pynative_synchronize": "morel.common.api",
}
for _home, _names in {
    "morel.common.generator": "Generator default_generator manual_seed seed initial_seed get_rng_state set_rng_state",
    "morel.common.marks": "JitConfig constexpr from_numpy frombuffer is_tensor lazy_inline mutable no_inline",
    "morel.common.recomputation": "recompute",
    "morel.common.grad_function": "_Function",
    "morel.common.saved_tensors": "saved_tensors_hooks register_saved_tensors_hooks",
    "morel.log": "get_level get_log_config",
    "morel.parallel": "Layout",
    "morel.parallel.function": "reshard",
    "morel.context": "STRICT COMPATIBLE LAX ParallelMode set_ps_context get_ps_context reset_ps_context",
    "morel.runtime": "synchronize Stream Event StreamCtx current_stream default_stream communication_stream set_cur_stream "
    "empty_cache memory_stats memory_reserved memory_allocated max_memory_reserved max_memory_allocated "
    "reset_peak_memory_stats reset_max_memory_reserved reset_max_memory_allocated memory_summary set_memory "
    "launch_blocking dispatch_threads_num set_cpu_affinity",
    "morel.train": "Callback RunContext LossMonitor TimeMonitor ModelCheckpoint CheckpointConfig EarlyStopping "
    "ReduceLROnPlateau LearningRateScheduler History LambdaCallback OnRequestExit SummaryCollector "
    "SummaryLandscape SummaryRecord BackupAndRestore FlopsUtilizationCollector TrainFaultTolerance "
    "LossScaleManager FixedLossScaleManager DynamicLossScaleManager DatasetHelper "
    "connect_network_with_dataset data_sink build_train_network async_ckpt_thread_status "
    "ckpt_to_safetensors safetensors_to_ckpt export_split_mindir Metric Accuracy Loss "
    "TopKCategoricalAccuracy Top1CategoricalAccuracy Top5CategoricalAccuracy Precision Recall F1 Fbeta MAE MSE "
    "ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Perplexity Dice ROC auc BleuScore "
    "HausdorffDistance MeanSurfaceDistance RootMeanSquareDistance OcclusionSensitivity get_metric_fn names "
    "rearrange_inputs",
}.items():
    _LAZY.update(dict.fromkeys(_names.split(), _home))
_MODULES = (
    "_c_expression",
    "_checkparam",
    "amp",
    "device_manager",
    "api",
    "boost",
    "common",
    "communication",
    "dataset",
    "experimental",
    "hal",
    "log",
    "mint",
    "mindrecord",
    "nn",
    "numpy",
    "onnx",
    "ops",
    "parallel",
    "profiler",
    "rewrite",
    "runtime",
    "scipy",
    "train",
    "utils",
    "multiprocessing",
    "context",
)
__all__ = ["Tensor", "tensor", *_dtype_names, *(name for name in _LAZY if not name.startswith("_"))]


# Element types whose names are Python's own types; names here, not for `from morel import *`.
_PYTHON_NAMES = {"bool": "bool_", "float": "float32", "int": "int32"}


def __getattr__(name):
    import importlib

    if name in _PYTHON_NAMES:
        return globals()[_PYTHON_NAMES[name]]
    home = _LAZY.get(name)
    if home == "morel" or name in _MODULES:
        try:
            return importlib.import_module(f"morel.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"morel.{name}":
                raise
            raise AttributeError(f"module 'morel' has no attribute '{name}'") from None
    if home is None:
        raise AttributeError(f"module 'morel' has no attribute '{name}'")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LAZY, *_MODULES})
