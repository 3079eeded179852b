"""torch.utils.data: data sets, samplers, and the loader that makes batches of them."""

from msadapter.pytorch.utils.data._collate import default_collate, default_convert
from msadapter.pytorch.utils.data._worker import WorkerInfo, get_worker_info
from msadapter.pytorch.utils.data.dataloader import DataLoader
from msadapter.pytorch.utils.data.dataset import (ChainDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split)
from msadapter.pytorch.utils.data.distributed import DistributedSampler
from msadapter.pytorch.utils.data.sampler import (BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                                                  WeightedRandomSampler)

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
           "RandomSampler", "Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
           "WorkerInfo", "default_collate", "default_convert", "get_worker_info", "random_split"]
