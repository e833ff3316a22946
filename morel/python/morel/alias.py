"""Makes ``import mindspore`` mean Morel, in this process, from the moment this module is imported.

`python -m morel script.py` uses it; so may tests (``pytest -p morel.alias``). Nothing else imports it.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

import morel
from morel.ops.operations import PARTS

__all__ = ["install", "MINDSPORE_VERSION"]

MINDSPORE_VERSION = "2.8.0"  # whose API this is; scripts compare with it
_NAME = "mindspore"
# Modules of MindSpore whose content lies under another name here.
_MOVED = {
    "mindspore.common._grad_function": "morel.common.grad_function",
    "mindspore.common.jit_config": "morel.common.marks",
    "mindspore.common.lazy_inline": "morel.common.marks",
    "mindspore.common.mutable": "morel.common.marks",
    "mindspore.common.no_inline": "morel.common.marks",
    "mindspore.common.recompute": "morel.common.recomputation",
    "mindspore.dataset.core": "morel.dataset",
    "mindspore.dataset.core.config": "morel.dataset.config",
    "mindspore.dataset.engine": "morel.dataset",
    "mindspore.dataset.engine.datasets": "morel.dataset.datasets",
    "mindspore.dataset.engine.datasets_user_defined": "morel.dataset.sources",
    "mindspore.dataset.engine.datasets_vision": "morel.dataset.sources",
    "mindspore.dataset.engine.iterators": "morel.dataset.iterators",
    "mindspore.dataset.engine.samplers": "morel.dataset.samplers",
    "mindspore.dataset.vision.transforms": "morel.dataset.vision",
}
# Modules that hold a part of the names of another one there.
for _whole, _parts in {
    "ops.auto_generate": "gen_ops_def gen_ops_prim",
    "ops.composite": "base",
    "ops.operations": " ".join(PARTS),
    "ops.function": "array_func clip_func debug_func grad grad.grad_func image_func linalg_func math_func nn_func other_func "
    "parameter_func random_func spectral_func vmap_func",
}.items():
    _MOVED.update({f"mindspore.{_whole}.{part}": f"morel.{_whole}" for part in _parts.split()})

_PACKAGES = {name.rpartition(".")[0] for name in _MOVED}


def _home(name):
    return _MOVED.get(name) or "morel" + name[len(_NAME) :]


class _Root(types.ModuleType):
    """The module `mindspore`: all names of `morel`, and MindSpore's version."""

    def __getattr__(self, name):
        try:
            return getattr(morel, name)
        except AttributeError:
            raise AttributeError(f"module 'mindspore' has no attribute '{name}' in Morel") from None

    def __dir__(self):
        return sorted({*types.ModuleType.__dir__(self), *dir(morel)})


def _make_root():
    root = _Root(_NAME, morel.__doc__)
    root.__version__ = MINDSPORE_VERSION
    root.__file__ = morel.__file__
    return root


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds mindspore.x.y as the module object of morel.x.y: there is one of each class, whatever name it is imported by."""

    def find_spec(self, name, path=None, target=None):
        if name == _NAME:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if not name.startswith(_NAME + "."):
            return None
        try:
            found = importlib.util.find_spec(_home(name))
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None or name in _PACKAGES
        return importlib.machinery.ModuleSpec(name, self, is_package=is_package)

    def create_module(self, spec):
        if spec.name == _NAME:
            return _make_root()
        module = importlib.import_module(_home(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has put the alias's spec into the module; its own one names it rightly.
        if isinstance(module, _Root):
            return
        state = module.__spec__.loader_state
        if state is not None:
            module.__spec__ = state


class _Finders(list):
    """`sys.meta_path` with our finder in front, whatever is put there later: others (pytest's, which rewrites assertions) would
    find the files of morel under their alias and execute them a second time."""

    def insert(self, index, finder):
        super().insert(max(index, 1) if index >= 0 else index, finder)


def install():
    """Puts Morel in the place of MindSpore; a MindSpore that is imported already is an error.

    Raises:
        ImportError: the real MindSpore has been imported before.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if _NAME in sys.modules:
        raise ImportError("mindspore has been imported already; import morel.alias first.")
    sys.meta_path = _Finders([_Finder(), *sys.meta_path])


install()
