"""Element types under their MindSpore names, and conversions from and to NumPy and Python types."""

from morel import _core
from morel._core import DType

(
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
) = _core.dtypes
byte, short, intc, intp, half, single, double = int8, int16, int32, int64, float16, float32, float64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
long, cfloat, cdouble = int64, complex64, complex128


class OtherType:
    """A type that is no element type of tensors: of text, lists and so on."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"mindspore.{self.name.lower()}"


class TensorType(OtherType):
    """The type of tensors with elements of one type; of all tensors without it."""

    def __init__(self, element=None):
        super().__init__("Tensor" if element is None else f"Tensor[{element}]")
        self._element = element

    def element_type(self):
        """The type of the elements."""
        return self._element

    def __eq__(self, other):
        return isinstance(other, TensorType) and self._element == other._element

    def __hash__(self):
        return hash(self.name)


string, tensor_type, type_none = OtherType("String"), TensorType(), OtherType("None")
list_, tuple_ = OtherType("List"), OtherType("Tuple")
int_, uint, float_, number = (
    int64,
    uint64,
    float64,
    (
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
        float16,
        bfloat16,
        float32,
        float64,
        complex64,
        complex128,
    ),
)
number_type = number
int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, bfloat16, float32, float64)
complex_type = (complex64, complex128)
signed_type = (int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)
all_types = _core.dtypes


def named(name):
    """The dtype of a name: "Float32", "float32"."""
    return _core.dtype_named(name)


def dtype_to_nptype(type_):
    """The NumPy type of a dtype. bfloat16 has none: TypeError."""
    import numpy

    if type_ == bfloat16:
        raise TypeError("NumPy has no bfloat16.")
    return numpy.dtype(_numpy_name(type_)).type


def _numpy_name(type_):
    return "bool" if type_ == bool_ else str(type_).lower()


def dtype_to_pytype(type_):
    """bool, int, float or complex."""
    if type_ == bool_:
        return bool
    if type_ in int_type or type_ in uint_type:
        return int
    return complex if type_ in complex_type else float


def pytype_to_dtype(obj):
    """The dtype of a Python or NumPy type: float -> float32, int -> int64."""
    return _core.as_dtype(obj)


def get_py_obj_dtype(obj):
    """The dtype that a Python number would have as a tensor."""
    return _core.as_dtype(type(obj))


def dtype_to_string(type_):
    """Its name: "Float32"."""
    return str(type_)


def issubclass_(type_, dtype):
    """Whether ``type_`` is ``dtype``, or one of a group such as ``float_type`` or ``tensor_type``."""
    if dtype is tensor_type:
        return isinstance(type_, TensorType)
    return type_ in dtype if isinstance(dtype, (tuple, list)) else type_ == dtype


Type = DType
_NAMES = (
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "byte",
    "short",
    "intc",
    "intp",
    "half",
    "single",
    "double",
    "ubyte",
    "ushort",
    "uintc",
    "uintp",
    "int_",
    "uint",
    "float_",
    "number",
    "long",
    "cfloat",
    "cdouble",
    "string",
    "tensor_type",
    "TensorType",
    "type_none",
    "list_",
    "tuple_",
)
__all__ = [
    *_NAMES,
    "Type",
    "DType",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "pytype_to_dtype",
    "get_py_obj_dtype",
    "dtype_to_string",
    "issubclass_",
    "number_type",
    "int_type",
    "uint_type",
    "float_type",
    "complex_type",
]
