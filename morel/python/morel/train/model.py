"""Model: training, evaluation and prediction of a network."""

import copy

from morel.context import get_auto_parallel_context
from morel.train._check import int_at_least, is_bool
from morel.train.callback._callback import CallbackList, RunContext, _InternalCallbackParam, as_list, loss_value
from morel.train.callback._progress import ProgressBar, wanted_by_default

__all__ = ["Model"]


class Model:
    """A network with what it takes to train and judge it.

    Args:
        network (Cell): the network.
        loss_fn (Cell, optional): compares outputs with labels. Default: the network's output is the loss.
        optimizer (Cell, optional): needed by `train` and `fit`.
        metrics (Union[dict, set], optional): names, or name -> Metric; needed by `eval`.
        eval_network (Cell, optional): gives (loss, output, label) for evaluations. Default: made of network and loss.
        eval_indexes (list, optional): which outputs of `eval_network` are loss, output and label; all if ``None``.
        amp_level (str): as in `amp.auto_mixed_precision`. Default ``"O0"``.
        boost_level (str): only ``"O0"``.
        kwargs: `loss_scale_manager`, `keep_batchnorm_fp32`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: unknown keyword or level; metrics without a way to get outputs.

    Example:
        >>> import numpy as np
        >>> import morel.dataset as ds
        >>> from morel import nn
        >>> from morel.train import Model
        >>> x = np.random.randn(32, 4).astype(np.float32)
        >>> data = ds.NumpySlicesDataset((x, x.sum(1, keepdims=True))).batch(8)
        >>> net = nn.Dense(4, 1)
        >>> model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"mse"})
        >>> model.train(2, data)
        >>> sorted(model.eval(data))
        ['mse']
    """

    def __init__(
        self,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        eval_network=None,
        eval_indexes=None,
        amp_level="O0",
        boost_level="O0",
        **kwargs,
    ):
        from morel.nn.cell import Cell
        from morel.train.amp import _LEVELS

        for value, name in ((network, "network"), (optimizer, "optimizer"), (eval_network, "eval_network")):
            if value is not None and not isinstance(value, Cell) or (value is None and name == "network"):
                raise TypeError(f"The type of '{name}' should be 'Cell', but got type '{type(value).__name__}'.")
        if loss_fn is not None and not callable(loss_fn):
            raise TypeError(
                f"The type of 'loss_fn' should be 'Cell' or a function, but got type '{type(loss_fn).__name__}'."
            )
        if amp_level not in _LEVELS:
            raise ValueError(f"The 'level' should be in : {list(_LEVELS)}, but got {amp_level}.")
        for name in kwargs:
            if name not in ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level"):
                raise ValueError(
                    f"The argument in 'kwargs' should be 'loss_scale_manager' or 'keep_batchnorm_fp32' or "
                    f"'boost_config_dict' or 'acc_level', but got '{name}'."
                )
        self._network = network
        self._loss_fn = loss_fn
        self._optimizer = optimizer
        self._amp_level = amp_level
        self._boost_level = boost_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        self._amp_kwargs = {k: kwargs[k] for k in ("loss_scale_manager", "keep_batchnorm_fp32") if k in kwargs}
        self._train_network = self._build_train_network()
        self._build_eval_network(metrics, eval_network, eval_indexes)
        self._predict_network = network

    # --- building ---

    def _build_train_network(self):
        from morel import nn
        from morel.train.amp import build_train_network

        if self._optimizer is not None:
            return build_train_network(
                self._network, self._optimizer, self._loss_fn, self._amp_level, self._boost_level, **self._amp_kwargs
            )
        return nn.WithLossCell(self._network, self._loss_fn) if self._loss_fn is not None else self._network

    def _build_eval_network(self, metrics, eval_network, eval_indexes):
        from morel import nn
        from morel.train.metrics import get_metrics

        self._metric_fns = get_metrics(metrics)
        self._eval_network, self._eval_indexes = eval_network, None
        if not self._metric_fns:
            return
        if eval_network is not None:
            if eval_indexes is not None and not (isinstance(eval_indexes, list) and len(eval_indexes) == 3):
                raise ValueError(
                    "The argument 'eval_indexes' must be a list or None. If 'eval_indexes' is a list, length of it "
                    f"must be three. But got 'eval_indexes' {eval_indexes}"
                )
            self._eval_indexes = eval_indexes
            return
        if self._loss_fn is None:
            raise ValueError(
                "If `metrics` is set, `eval_network` must not be None. Do not set `metrics` if you don't want an "
                "evaluation.\nIf evaluation is required, specify `eval_network`, or `loss_fn`, from which the "
                "evaluation network is built if data, label and logits are one each."
            )
        self._eval_network = nn.WithEvalCell(self._network, self._loss_fn, self._amp_level in ("O2", "O3", "auto"))
        self._eval_indexes = [0, 1, 2]

    train_network = property(lambda self: self._train_network, doc="The cell that makes a training step.")
    eval_network = property(lambda self: self._eval_network, doc="The cell that gives loss, output and label.")
    predict_network = property(lambda self: self._predict_network, doc="The network.")

    # --- training ---

    def train(self, epoch, train_dataset, callbacks=None, dataset_sink_mode=False, sink_size=-1, initial_epoch=0):
        """Trains the network.

        Args:
            epoch (int): the last epoch.
            train_dataset (Dataset): batches; with a loss function of two columns, data and label.
            callbacks (Union[Callback, list[Callback]], optional): what else is to happen.
            dataset_sink_mode (bool): kept for scripts: a CPU takes batches one by one. Default ``False``.
            sink_size (int): kept for scripts. Default ``-1``.
            initial_epoch (int): the epoch before the first one. Default ``0``.
        """
        self._check_training(epoch, train_dataset, dataset_sink_mode, initial_epoch, sink_size, "train")
        self._run_training(epoch, train_dataset, callbacks, dataset_sink_mode, initial_epoch)

    def fit(
        self,
        epoch,
        train_dataset,
        valid_dataset=None,
        valid_frequency=1,
        callbacks=None,
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
    ):
        """Trains the network and evaluates it in between.

        Args:
            epoch (int): the last epoch.
            train_dataset (Dataset): batches for training.
            valid_dataset (Dataset, optional): batches for evaluations.
            valid_frequency (Union[int, list]): evaluate at every so many epochs, or after those in the list. Default ``1``.
            callbacks, dataset_sink_mode, sink_size, initial_epoch: as in `train`.
            valid_dataset_sink_mode (bool): kept for scripts. Default ``False``.
        """
        self._check_training(epoch, train_dataset, dataset_sink_mode, initial_epoch, sink_size, "fit")
        if not isinstance(valid_frequency, (int, list)) or isinstance(valid_frequency, bool):
            raise TypeError(
                f"For 'Model.fit', the type of 'valid_frequency' must be a list or an integer, but got type "
                f"{type(valid_frequency)}."
            )
        if valid_dataset is not None and not self._metric_fns:
            raise ValueError(
                "For 'Model.fit', if valid_dataset is not None, the model argument 'metrics' can not be"
                "None or empty, you should set the argument 'metrics' for model."
            )
        is_bool(valid_dataset_sink_mode)

        def due(number):
            if valid_dataset is None:
                return False
            return number % valid_frequency == 0 if isinstance(valid_frequency, int) else number in valid_frequency

        self._run_training(epoch, train_dataset, callbacks, dataset_sink_mode, initial_epoch, valid_dataset, due)

    def _check_training(self, epoch, dataset, dataset_sink_mode, initial_epoch, sink_size, what):
        is_bool(dataset_sink_mode)
        if not isinstance(sink_size, int) or isinstance(sink_size, bool):
            raise TypeError(f"The input value must be int, but got '{type(sink_size).__name__}'")
        if sink_size < -1 or sink_size == 0:
            raise ValueError(
                f"For 'Model.{what}', The argument 'sink_size' must be -1 or positive, but got {sink_size}."
            )
        int_at_least(epoch, 1)
        int_at_least(initial_epoch, 0)
        if initial_epoch >= epoch:
            raise ValueError(
                f"For 'Model.{what}', the parameter 'epoch' must bigger than parameter 'initial_epoch', but got the "
                f"parameter 'epoch' is {epoch}, 'initial_epoch' is {initial_epoch}."
            )
        if not hasattr(dataset, "create_tuple_iterator"):
            raise TypeError(f"For 'Model.{what}', the 'train_dataset' must be a dataset, but got {type(dataset)}.")
        size = dataset.get_dataset_size()
        if size == 0:
            raise ValueError("There is no valid data in dataset, please check dataset file firstly.")

    def _arguments(self, callbacks, **facts):
        """What callbacks are told at the start."""
        args = _InternalCallbackParam(
            cur_step_num=0,
            network=self._network,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            parallel_mode=get_auto_parallel_context("parallel_mode"),
            device_number=1,
            list_callback=callbacks,
            train_network=self._train_network,
            last_save_ckpt_step=None,
            latest_ckpt_file=None,
            loss_scale_mananger=self._loss_scale_manager,
            initial_step=None,
        )
        args.update(facts)
        return args

    def _run_training(self, epoch, dataset, callbacks, sink, initial_epoch, valid_dataset=None, due=None):
        callbacks = as_list(callbacks)
        if wanted_by_default(callbacks):
            callbacks = [*callbacks, ProgressBar()]
        args = self._arguments(
            callbacks,
            epoch_num=epoch - initial_epoch,
            initial_epoch=initial_epoch,
            mode="train",
            batch_num=dataset.get_dataset_size(),
            train_dataset=dataset,
            dataset_sink_mode=sink,
            train_dataset_element=None,
        )
        context = RunContext(args)
        iterator = dataset.create_tuple_iterator(num_epochs=epoch - initial_epoch)
        self._train_network.set_train()
        try:
            with CallbackList(callbacks) as hooks:
                hooks.on_train_begin(context)
                for number in range(initial_epoch + 1, epoch + 1):
                    args.cur_epoch_num = number
                    hooks.on_train_epoch_begin(context)
                    self._train_epoch(iterator, hooks, context, args)
                    if due is not None and due(number):
                        self._evaluate_between(valid_dataset, hooks, context, args)
                    hooks.on_train_epoch_end(context)
                    for key in ("metrics", "eval_results"):  # of this epoch only
                        args.pop(key, None)
                    if context.get_stop_requested():
                        break
                hooks.on_train_end(context)
        finally:
            iterator.stop()

    def _train_epoch(self, iterator, hooks, context, args):
        network, manager = self._train_network, self._loss_scale_manager
        drops = manager is not None and getattr(manager, "get_drop_overflow_update", lambda: False)()
        for element in iterator:
            if self._loss_fn is not None and len(element) != 2:
                raise ValueError(
                    f"When 'loss_fn' is not None, 'train_dataset' should return two elements, but got "
                    f"{len(element)}, please check the number of elements returned by 'train_dataset'"
                )
            args["train_dataset_element"] = element
            args["cur_step_num"] += 1
            hooks.on_train_step_begin(context)
            args["net_outputs"] = outputs = network(*element)
            if drops and isinstance(outputs, tuple) and len(outputs) > 1:
                manager.update_loss_scale(bool(outputs[1]))
            hooks.on_train_step_end(context)
            if context.get_stop_requested():
                return

    # --- evaluation ---

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode=False):
        """The metrics of the network on a dataset.

        Args:
            valid_dataset (Dataset): batches.
            callbacks (Union[Callback, list[Callback]], optional): what else is to happen.
            dataset_sink_mode (bool): kept for scripts. Default ``False``.

        Returns:
            dict, name -> value.

        Raises:
            ValueError: the model has no metrics.
        """
        is_bool(dataset_sink_mode)
        if not self._metric_fns:
            raise ValueError(
                "For Model.eval, the model argument 'metrics' can not be None or empty, you should set the argument "
                "'metrics' for model."
            )
        callbacks = as_list(callbacks)
        if wanted_by_default(callbacks):
            callbacks = [*callbacks, ProgressBar()]
        args = self._arguments(
            callbacks,
            mode="eval",
            eval_network=self._eval_network,
            valid_dataset=valid_dataset,
            batch_num=valid_dataset.get_dataset_size(),
            dataset_sink_mode=dataset_sink_mode,
        )
        with CallbackList(callbacks) as hooks:
            return self._evaluate(valid_dataset, hooks, RunContext(args), args)

    def _evaluate_between(self, dataset, hooks, context, args):
        """An evaluation in the middle of a training: what callbacks know of the training comes back afterwards."""
        kept = {
            key: args[key]
            for key in ("mode", "batch_num", "cur_step_num", "dataset_sink_mode", "net_outputs")
            if key in args
        }
        args.update(
            mode="eval",
            eval_network=self._eval_network,
            valid_dataset=dataset,
            cur_step_num=0,
            batch_num=dataset.get_dataset_size(),
        )
        try:
            self._evaluate(dataset, hooks, context, args)
        finally:
            args.update(kept)
            self._train_network.set_train()

    def _evaluate(self, dataset, hooks, context, args):
        network = self._eval_network
        network.set_train(False)
        for metric in self._metric_fns.values():
            metric.clear()
        hooks.on_eval_begin(context)
        hooks.on_eval_epoch_begin(context)
        iterator = dataset.create_tuple_iterator(num_epochs=1)
        try:
            for element in iterator:
                args["cur_step_num"] += 1
                args["eval_dataset_element"] = element
                hooks.on_eval_step_begin(context)
                args["net_outputs"] = outputs = network(*element)
                self._update_metrics(outputs)
                hooks.on_eval_step_end(context)
        finally:
            iterator.stop()
        hooks.on_eval_epoch_end(context)
        metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
        args["metrics"] = metrics
        args["eval_results"] = copy.deepcopy(metrics)
        loss = self._last_loss(args.get("net_outputs"))
        if loss is not None:
            args["eval_results"]["eval_loss"] = loss
        hooks.on_eval_end(context)
        return metrics

    def _last_loss(self, outputs):
        """The loss of the last batch, where the evaluation network gives one."""
        if isinstance(outputs, (tuple, list)):
            outputs = outputs[self._eval_indexes[0]] if self._eval_indexes else outputs[0] if outputs else None
        return loss_value(outputs) if getattr(outputs, "size", 0) == 1 else None

    def _update_metrics(self, outputs):
        from morel.train.metrics import Loss

        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        for metric in self._metric_fns.values():
            if self._eval_indexes is None or metric.indexes:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[self._eval_indexes[0]])
            else:
                metric.update(outputs[self._eval_indexes[1]], outputs[self._eval_indexes[2]])

    # --- the rest ---

    def predict(self, *predict_data, backend=None, config=None):
        """The network's outputs.

        Args:
            predict_data (Tensor): its inputs.
            backend (str, optional): only ``None``; ``"lite"`` is not supported.
            config: kept for scripts.
        """
        if backend not in (None, "lite"):
            raise ValueError(f"For Model.predict, the 'backend' should be None or 'lite', but got {backend}.")
        if backend == "lite":
            raise NotImplementedError("For Model.predict, backend 'lite' is not supported yet; leave it None.")
        self._predict_network.set_train(False)
        return self._predict_network(*predict_data)

    def build(self, train_dataset=None, valid_dataset=None, sink_size=-1, epoch=1, sink_mode=True):
        """Kept for scripts: prepares graphs; there are none in PyNative mode."""
        int_at_least(epoch, 1)

    def infer_train_layout(self, train_dataset, dataset_sink_mode=True, sink_size=-1):
        """Not supported yet: comes with distributed training."""
        raise NotImplementedError(
            "'Model.infer_train_layout' is not supported yet; it comes with distributed training."
        )

    def infer_predict_layout(self, *predict_data, skip_backend_compile=False):
        """Not supported yet: comes with distributed training."""
        raise NotImplementedError(
            "'Model.infer_predict_layout' is not supported yet; it comes with distributed training."
        )

    def __repr__(self):
        return (
            f"Model(network={type(self._network).__name__}, loss_fn={type(self._loss_fn).__name__}, "
            f"optimizer={type(self._optimizer).__name__}, metrics={sorted(self._metric_fns)})"
        )
