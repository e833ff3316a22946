"""The data pipeline: sources, operations on rows, samplers, transforms.

Example:
    >>> import morel.dataset as ds
    >>> data = ds.NumpySlicesDataset(list(range(6)), ["x"], shuffle=False).map(lambda x: x * x, "x").batch(3)
    >>> [row[0].tolist() for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [[0, 1, 4], [9, 16, 25]]
"""

from morel.dataset import config
from morel.dataset.datasets import *  # noqa: F401,F403
from morel.dataset.datasets import zip  # noqa: A004
from morel.dataset.iterators import DictIterator, Iterator, TupleIterator
from morel.dataset.map_batch import *  # noqa: F401,F403
from morel.dataset.samplers import *  # noqa: F401,F403
from morel.dataset.sources import *  # noqa: F401,F403

_SUBMODULES = ("vision", "transforms")
# Public in MindSpore, to come with the full pipeline.
_LATER = frozenset(
    """
AGNewsDataset AmazonReviewDataset CLUEDataset CMUArcticDataset CSVDataset Caltech101Dataset Caltech256Dataset CelebADataset
CityscapesDataset CoNLL2000Dataset CocoDataset DBpediaDataset DIV2KDataset DSCallback DatasetCache EMnistDataset
EnWik9Dataset FakeImageDataset FlickrDataset Flowers102Dataset Food101Dataset GTZANDataset IMDBDataset IWSLT2016Dataset
IWSLT2017Dataset ImageFolderDataset KITTIDataset LFWDataset LJSpeechDataset LSUNDataset LibriTTSDataset ManifestDataset
MindDataset Multi30kDataset OBSMindDataset OmniglotDataset PennTreebankDataset PhotoTourDataset Places365Dataset
QMnistDataset RandomDataset RenderedSST2Dataset SBDataset SBUDataset SQuADDataset SST2Dataset STL10Dataset SUN397Dataset
SVHNDataset Schema SemeionDataset SogouNewsDataset SpeechCommandsDataset TFRecordDataset TedliumDataset TextFileDataset
UDPOSDataset USPSDataset VOCDataset WIDERFaceDataset WaitedDSCallback WikiTextDataset YahooAnswersDataset
YelpReviewDataset YesNoDataset compare deserialize serialize show sync_wait_for_dataset""".split()
)


def __getattr__(name):
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module("morel.dataset." + name)
    if name in _LATER:

        def later(*args, **kwargs):
            raise NotImplementedError(
                f"'{name}' is not supported yet; supported are GeneratorDataset, NumpySlicesDataset, "
                f"MnistDataset, FashionMnistDataset, KMnistDataset, Cifar10Dataset, Cifar100Dataset."
            )

        later.__name__ = name
        return later
    raise AttributeError(f"module 'morel.dataset' has no attribute '{name}'")
