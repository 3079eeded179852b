"""Published sets of films in folders of their classes: HMDB51, Kinetics, UCF101. Entries are (frames, sound, number of the class)."""

import csv
import glob
import os

from msadapter.torchvision.datasets import utils
from msadapter.torchvision.datasets._base import join, lines_of
from msadapter.torchvision.datasets.folder import find_classes, make_dataset
from msadapter.torchvision.datasets.sources import files
from msadapter.torchvision.datasets.utils import verify_str_arg
from msadapter.torchvision.datasets.video_utils import VideoClips
from msadapter.torchvision.datasets.vision import VisionDataset


class _Films(VisionDataset):
    """`samples` (film, class) and `video_clips` of those in `indices`."""

    def _listed(self, folder, extensions):
        self.classes, numbers = find_classes(folder)
        self.samples = make_dataset(folder, numbers, extensions)
        return [path for path, _ in self.samples]

    def __len__(self):
        return self.video_clips.num_clips()

    def __getitem__(self, index):
        video, audio, _, film = self.video_clips.get_clip(index)
        label = self.samples[self.indices[film]][1]
        return video if self.transform is None else self.transform(video), audio, label


class _FoldedFilms(_Films):
    """Films of one of three published divisions."""

    def __init__(self, root, annotation_path, frames_per_clip, step_between_clips=1, frame_rate=None, fold=1, train=True, transform=None,
                 _precomputed_metadata=None, num_workers=1, _video_width=0, _video_height=0, _video_min_dimension=0, _audio_samples=0, output_format="THWC"):
        super().__init__(root)
        if fold not in (1, 2, 3):
            raise ValueError(f"fold should be between 1 and 3, got {fold}")
        self.fold, self.train = fold, train
        paths = self._listed(self.root, ("avi",))
        self.full_video_clips = VideoClips(paths, frames_per_clip, step_between_clips, frame_rate, _precomputed_metadata, num_workers=num_workers,
                                           _video_width=_video_width, _video_height=_video_height, _video_min_dimension=_video_min_dimension,
                                           _audio_samples=_audio_samples, output_format=output_format)
        chosen = self._chosen(annotation_path, fold, train)
        self.indices = [i for i, path in enumerate(paths) if self._name(path) in chosen]
        self.video_clips = self.full_video_clips.subset(self.indices)
        self.transform = transform

    @property
    def metadata(self):
        """What `_precomputed_metadata` takes."""
        return self.full_video_clips.metadata


class HMDB51(_FoldedFilms):
    """Human movements of 51 kinds (Kuehne et al., 2011); `annotation_path` has CLASS_test_splitN.txt with 1 for training and 2 for testing."""

    _name = staticmethod(os.path.basename)

    @staticmethod
    def _chosen(folder, fold, train):
        rows = [line.split() for path in glob.glob(join(glob.escape(str(folder)), f"*test_split{fold}.txt")) for line in lines_of(path)]
        return {name for name, part in rows if int(part) == (1 if train else 2)}


class UCF101(_FoldedFilms):
    """Actions of 101 kinds (Soomro et al., 2012); `annotation_path` has trainlist0N.txt and testlist0N.txt with CLASS/FILM."""

    def _name(self, path):
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    @staticmethod
    def _chosen(folder, fold, train):
        return {line.split(" ")[0] for line in lines_of(join(folder, f"{'train' if train else 'test'}list{fold:02d}.txt"))}


def _fetch_films(arguments):
    url, archives, films = arguments
    utils.download_and_extract_archive(url, archives, films)


class Kinetics(_Films):
    """Actions of 400, 600 or 700 kinds in `root`/SPLIT/CLASS (Kay et al., 2017); with `_legacy` in `root`/CLASS."""

    def __init__(self, root, frames_per_clip, num_classes="400", split="train", frame_rate=None, step_between_clips=1, transform=None,
                 extensions=("avi", "mp4"), download=False, num_download_workers=1, num_workers=1, _precomputed_metadata=None, _video_width=0, _video_height=0,
                 _video_min_dimension=0, _audio_samples=0, _audio_channels=0, _legacy=False, output_format="TCHW"):
        self.num_classes = verify_str_arg(num_classes, "num_classes", ["400", "600", "700"])
        super().__init__(root)
        self.extensions, self.num_download_workers, self._legacy = extensions, num_download_workers, _legacy
        if _legacy:
            print("Using legacy structure")
            self.split_folder, self.split, output_format = self.root, "unknown", "THWC"
            if download:
                raise ValueError("Cannot download the videos using legacy_structure.")
        else:
            self.split = verify_str_arg(split, "split", ["train", "val", "test"])
            self.split_folder = join(self.root, split)
        if download:
            self.download_and_process_videos()
        paths = self._listed(self.split_folder, extensions)
        self.indices = range(len(paths))
        self.video_clips = VideoClips(paths, frames_per_clip, step_between_clips, frame_rate, _precomputed_metadata, num_workers=num_workers,
                                      _video_width=_video_width, _video_height=_video_height, _video_min_dimension=_video_min_dimension,
                                      _audio_samples=_audio_samples, _audio_channels=_audio_channels, output_format=output_format)
        self.transform = transform

    @property
    def metadata(self):
        """What `_precomputed_metadata` takes."""
        return self.video_clips.metadata

    def download_and_process_videos(self):
        """Fetch the archives and sort the films by class. Raises RuntimeError when the split's folder is there."""
        if os.path.exists(self.split_folder):
            raise RuntimeError(f"The directory {self.split_folder} already exists. If you want to re-download or re-extract the images, "
                               "delete the directory.")
        import multiprocessing
        import urllib.parse

        listed, annotated = (file.url.format(split=self.split) for file in files(f"kinetics/{self.num_classes}"))
        lists, annotations = join(self.root, "files"), join(self.root, "annotations")
        utils.download_url(listed, lists)
        jobs = [(urllib.parse.quote(line, safe="/,:"), join(self.root, "tars"), self.split_folder) for line in lines_of(join(lists, os.path.basename(listed)))]
        if self.num_download_workers == 1:
            for job in jobs:
                _fetch_films(job)
        else:
            with multiprocessing.Pool(self.num_download_workers) as pool:
                pool.map(_fetch_films, jobs)
        utils.download_url(annotated, annotations)
        self._sort_films(join(annotations, f"{self.split}.csv"))

    def _sort_films(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                name = f"{row['youtube_id']}_{int(row['time_start']):06}_{int(row['time_end']):06}.mp4"
                label = row["label"].replace(" ", "_").replace("'", "").replace("(", "").replace(")", "")
                os.makedirs(join(self.split_folder, label), exist_ok=True)
                if os.path.isfile(join(self.split_folder, name)):
                    os.replace(join(self.split_folder, name), join(self.split_folder, label, name))
