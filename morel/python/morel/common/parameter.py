"""Parameter and ParameterTuple: the tensors that a network learns."""

from morel import _core
from morel._core import Tensor
from morel.common.structure import changed

__all__ = ["Parameter", "ParameterTuple"]

_NAME_LIMIT = 1024
_GENERATED_PREFIX = "Parameter#"
_generated_count = 0
# False inside nn.utils.no_init_parameters(): new parameters keep their initializer and are filled on demand.
_fill_new_parameters = True


def _generate_name():
    global _generated_count
    name = _GENERATED_PREFIX + str(_generated_count)
    _generated_count += 1
    return name


def _is_parameter_generated(name):
    """True for a name that was made up because the user gave none; such a name is replaced by the attribute name."""
    return isinstance(name, str) and name.startswith(_GENERATED_PREFIX)


def _tensor_of(data):
    """The tensor that a new parameter will own: fresh storage for everything but a just-initialised tensor."""
    if isinstance(data, bool):
        raise ValueError("For 'Parameter', 'default_input' can not be `bool`.")
    if isinstance(data, Tensor):
        claim = getattr(data, "_claim_storage", None)
        return claim() if claim is not None else _core.detach(data).clone()
    from morel.common import dtype as mstype

    if isinstance(data, float):
        return Tensor(data, mstype.float32)
    if isinstance(data, int):
        return Tensor(data, mstype.int32)
    if isinstance(data, (list, tuple)) or hasattr(data, "__array__"):
        return Tensor(data)
    raise TypeError(
        f"For 'Parameter', the type of 'default_input' must be one of ['Tensor', 'int', 'float', "
        f"'numpy.ndarray', 'list'], but got {type(data).__name__}."
    )


class ParamInfo:
    """What the framework knows about a parameter besides its values."""

    __slots__ = (
        "name",
        "requires_grad",
        "layerwise_parallel",
        "parallel_optimizer",
        "comm_fusion",
        "unique",
        "parallel_optimizer_comm_recompute",
        "cache_enable",
        "cache_shape",
        "key",
        "storage_format",
        "parameter_shape",
        "is_param_init",
        "is_pipeline_shared_param",
        "obj",
        "__weakref__",
    )

    def __init__(self):
        self.name = ""
        self.requires_grad = True
        self.layerwise_parallel = False
        self.parallel_optimizer = True
        self.comm_fusion = 1
        self.unique = False
        self.parallel_optimizer_comm_recompute = False
        self.cache_enable = False
        self.cache_shape = []
        self.key = -1
        self.storage_format = ""
        self.parameter_shape = ()
        self.is_param_init = False
        self.is_pipeline_shared_param = False
        self.obj = None

    def clone(self):
        other = ParamInfo()
        for field in ParamInfo.__slots__[:-2]:
            setattr(other, field, getattr(self, field))
        return other


def _info_property(field, kind, doc):
    """A property stored in ParamInfo that accepts values of one type only."""

    def getter(self):
        return getattr(self.param_info, field)

    def setter(self, value):
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(
                f"For 'Parameter', the property '{field}' must be {kind.__name__} type, but got {type(value).__name__}."
            )
        setattr(self.param_info, field, value)

    return property(getter, setter, doc=doc)


class _ParameterHook:
    """The handle of a hook of a parameter."""

    def __init__(self, parameter, handle):
        self._parameter, self._handle = parameter, handle

    def remove(self):
        """Takes the hook out."""
        self._handle.remove()
        changed(self._parameter)


class Parameter(Tensor):
    """A tensor that is a learnable (or at least stored) part of a Cell.

    Assigning a Parameter to an attribute of a Cell registers it there. A Tensor given as `default_input` is copied, so
    the parameter owns its storage.

    Args:
        default_input (Union[Tensor, int, float, numpy.ndarray, list]): the initial value. A Python int gives int32, a
            float float32; arrays keep their dtype.
        name (str, optional): the name; ``None`` makes one up, which the owning Cell replaces by the attribute's name.
        requires_grad (bool): whether the value is trained. Default ``True``.
        layerwise_parallel (bool): not broadcast or averaged in data parallel training. Default ``False``.
        parallel_optimizer (bool): may be sharded by the parallel optimizer. Default ``True``.
        storage_format (str): kept for compatibility; layouts are chosen by the kernels.
        device (str, optional): where it lies, ``"CPU"`` or ``"OpenCL"``; by default where `default_input` is or, of
            numbers, where `morel.set_device` says.

    Raises:
        ValueError: `name` is not a str, `default_input` is a bool, `device` is unknown.
        TypeError: `default_input` is of another type, or a flag is not a bool.

    Example:
        >>> import morel as ms
        >>> from morel import Parameter, Tensor
        >>> p = Parameter(Tensor([1.0, 2.0]), name="w")
        >>> print(p)
        Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)
    """

    __hash__ = Tensor.__hash__ or object.__hash__

    def __init__(
        self,
        default_input,
        name=None,
        requires_grad=True,
        layerwise_parallel=False,
        parallel_optimizer=True,
        storage_format="",
        device=None,
    ):
        data = _tensor_of(default_input)
        _core.init_tensor(self, data if device in (None, "Remote") else _core.to_device(data, device))
        _core.is_parameter(self, True)
        self.param_info = ParamInfo()
        self.param_info.storage_format = storage_format
        self.param_info.parameter_shape = self.shape
        self.name = name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.sliced = False
        self.is_init = False
        self.init_flag = False
        self.requires_aggr = True
        self._inited_param = None
        deferred = getattr(default_input, "_deferred", False)
        self._initializer = default_input.init if deferred else None

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (
            self.__array__(copy=True),
            str(self.dtype),
            self.name,
            self.requires_grad,
            self.layerwise_parallel,
        )

    def __deepcopy__(self, memo):
        twin = self._twin(_core.detach(self).clone())
        memo[id(self)] = twin
        return twin

    def __repr__(self):
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__

    def __parameter__(self):
        """Marks the class for the graph front end."""

    def _twin(self, data):
        """A parameter with this one's description and `data` as values (not copied)."""
        twin = type(self).__new__(type(self))
        _core.init_tensor(twin, data)
        _core.is_parameter(twin, True)
        twin.__dict__.update(self.__dict__)
        twin.param_info = self.param_info.clone()
        return twin

    @property
    def name(self):
        """The name; unique among the parameters of a network."""
        return self.param_info.name

    @name.setter
    def name(self, value):
        if value is not None and not isinstance(value, str):
            raise ValueError(
                f"For 'Parameter', the type of 'name' must be str or None, but got {type(value).__name__}."
            )
        value = value.strip() if value else ""
        if not value:
            value = _generate_name()
        if len(value) > _NAME_LIMIT:
            raise ValueError(
                f"For 'Parameter', the length of 'name' must be at most {_NAME_LIMIT}, but got {len(value)}."
            )
        self.param_info.name = value

    @property
    def requires_grad(self):
        """Whether the parameter is trained."""
        return self.param_info.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        if not isinstance(value, bool):
            raise TypeError(f"For 'Parameter', 'requires_grad' must be bool, but got {type(value).__name__}.")
        self.param_info.requires_grad = value
        changed(self)

    def register_hook(self, hook):
        """Calls ``hook(grad)`` when the gradient of this parameter is known; see :meth:`Tensor.register_hook`."""
        handle = super().register_hook(hook)
        changed(self)
        return _ParameterHook(self, handle)

    layerwise_parallel = _info_property("layerwise_parallel", bool, "Left out of broadcast and gradient averaging.")
    parallel_optimizer = _info_property("parallel_optimizer", bool, "May be sharded by the parallel optimizer.")
    cache_enable = _info_property("cache_enable", bool, "Belongs to an embedding cache.")
    comm_fusion = _info_property("comm_fusion", int, "Group number for fused communication.")
    key = _info_property("key", int, "Key of the parameter in a parameter server.")
    unique = _info_property("unique", bool, "Whether sparse gradients of it already have unique indices.")
    parallel_optimizer_comm_recompute = _info_property(
        "parallel_optimizer_comm_recompute", bool, "Gather again in the backward pass."
    )

    @property
    def cache_shape(self):
        """Shape of the embedding cache, if any."""
        return self.param_info.cache_shape

    @cache_shape.setter
    def cache_shape(self, value):
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"For 'Parameter', 'cache_shape' must be tuple or list, but got {type(value).__name__}.")
        self.param_info.cache_shape = value

    @property
    def inited_param(self):
        """The parameter that replaced this one when its data was initialised; ``None`` here: filling is in place."""
        return self._inited_param

    @property
    def data(self):
        """The parameter itself, as a tensor."""
        return self

    @property
    def init(self):
        """The initializer that still has to be run, or ``None``."""
        return self._initializer

    @init.setter
    def init(self, value):
        self._initializer = value

    @property
    def has_init(self):
        """True while the values have not been filled yet (see `nn.utils.no_init_parameters`)."""
        return self._initializer is not None

    def value(self):
        """The current value as a plain Tensor; gradients flow through it."""
        return self.reshape(self.shape)

    def copy(self):
        """A plain tensor's `copy` gives a Tensor; a parameter's gives a Parameter with the same name."""
        return self.clone()

    def clone(self, init="same"):
        """Another parameter of the same shape, dtype and name.

        Args:
            init (Union[str, Number, Initializer]): ``"same"`` copies the values, everything else is given to
                `initializer`.
        """
        if isinstance(init, str) and init == "same":
            data = _core.detach(self).clone()
        else:
            from morel.common.initializer import initializer

            data = _tensor_of(initializer(init, self.shape, self.dtype))
            if sharding := _core.dist.sharding_of(self):
                data = _core.dist.distribute(data, sharding)
            elif data.device != self.device:
                data = _core.to_device(data, self.device)
        twin = self._twin(data)
        twin._initializer = None
        twin.is_init = False
        return twin

    def set_data(self, data, slice_shape=False):
        """Replaces the values (and the shape, when it differs); the dtype stays.

        Args:
            data (Union[Tensor, int, float]): the new values, cast to this parameter's dtype.
            slice_shape (bool): marks the parameter as already sliced for its device. Default ``False``.

        Returns:
            The parameter.

        Raises:
            TypeError: `data` is of another type, or a float for an integer parameter.
        """
        if isinstance(data, (int, float)) and not isinstance(data, bool):
            if isinstance(data, float) and str(self.dtype).startswith(("Int", "UInt", "Bool")):
                raise TypeError(
                    f"For 'Parameter', a float can not be stored in '{self.name}' of dtype {self.dtype}; "
                    f"use set_dtype first."
                )
            data = Tensor(data, self.dtype)
        elif not isinstance(data, Tensor):
            raise TypeError(f"For 'Parameter', 'data' must be Tensor, int or float, but got {type(data).__name__}.")
        if getattr(data, "has_init", False):
            data = data.init_data()
        if data.dtype != self.dtype:
            data = data.astype(self.dtype)
        if tuple(data.shape) != tuple(self.shape):
            _core.set_data(self, _core.to_device(_core.detach(data).clone(), self.device))
        elif data is not self:
            self.assign_value(data)
        self._initializer = None
        self.init_flag = False
        self.sliced = slice_shape
        return self

    def set_dtype(self, dtype):
        """Converts the values to `dtype`, in place, and returns the parameter."""
        if dtype != self.dtype:
            _core.set_data(self, _core.detach(self).astype(dtype))
        return self

    def init_data(self, layout=None, set_sliced=False):
        """Runs the pending initializer, if any, and returns the parameter."""
        if self._initializer is not None:
            from morel.common.initializer import fill

            fill(self, self._initializer)
            self._initializer = None
            self.sliced = set_sliced
        return self

    def add_pipeline_stage(self, stage):
        """Records that pipeline stage `stage` uses the parameter."""
        if not isinstance(stage, int) or isinstance(stage, bool) or stage < 0:
            raise TypeError(f"For 'Parameter', 'stage' must be a non-negative int, but got {stage}.")
        self.__dict__.setdefault("_pipeline_stages", []).append(stage)


def _rebuild_parameter(array, dtype_name, name, requires_grad, layerwise_parallel):
    """Unpickles a Parameter; dtypes that NumPy lacks travel through the nearest wider one."""
    data = Tensor(array)
    if str(data.dtype) != dtype_name:
        from morel.common import dtype as mstype

        data = data.astype(getattr(mstype, dtype_name.lower()))
    return Parameter(data, name, requires_grad, layerwise_parallel)


class _Buffer(Tensor):
    """A tensor that becomes a buffer of the Cell to whose attribute it is assigned.

    Args:
        data (Tensor): the values; shared, without gradient.
        persistent (bool): part of the state dict. Default ``True``.
    """

    __hash__ = Tensor.__hash__ or object.__hash__

    def __init__(self, data, *, persistent=True):
        if data is None:
            raise ValueError("For 'Buffer', 'data' can not be None.")
        if not isinstance(data, Tensor):
            raise TypeError(f"For 'Buffer', 'data' must be a Tensor, but got {type(data).__name__}.")
        _core.init_tensor(self, _core.detach(data))
        self.persistent = persistent


class ParameterTuple(tuple):
    """An immutable sequence of parameters with distinct names.

    Raises:
        TypeError: an element is not a Parameter.
        ValueError: two different parameters share a name.

    Example:
        >>> from morel import Parameter, ParameterTuple, Tensor
        >>> pair = ParameterTuple([Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")])
        >>> [p.name for p in pair.clone("m", "zeros")]
        ['m.a', 'm.b']
    """

    __slots__ = ()

    def __new__(cls, iterable):
        data = tuple(iterable)
        owners = {}
        for item in data:
            if not isinstance(item, Parameter):
                raise TypeError(
                    f"For 'ParameterTuple', every element must be a Parameter, but got {type(item).__name__}."
                )
            if owners.setdefault(item.name, item) is not item:
                raise ValueError(
                    f"For 'ParameterTuple', its name '{item.name}' already exists. "
                    f"Please set a unique name for the parameter."
                )
        return tuple.__new__(cls, data)

    def clone(self, prefix, init="same"):
        """Clones every element; names become ``prefix.name``."""
        if not isinstance(prefix, str) or not prefix:
            raise ValueError(f"For 'ParameterTuple', 'prefix' must be a non-empty str, but got {prefix!r}.")
        twins = []
        for item in self:
            twin = item.clone(init)
            twin.name = f"{prefix}.{item.name}"
            twins.append(twin)
        return ParameterTuple(twins)

    def __parameter_tuple__(self):
        """Marks the class for the graph front end."""
