"""Names of MindSpore's front end that scripts use."""

from morel.common.marks import lazy_inline as cell_attr_register

__all__ = ["cell_attr_register"]
