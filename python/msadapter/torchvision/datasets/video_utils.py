"""Clips of films: every run of so many frames, found by the times of all frames."""

import bisect
import math
import warnings

from msadapter import pytorch as torch
from msadapter.torchvision.io import read_video, read_video_timestamps


def unfold(tensor, size, step, dilation=1):
    """Windows (N, size) over a vector, `step` apart, of elements `dilation` apart. Raises ValueError for anything but a vector."""
    if tensor.dim() != 1:
        raise ValueError(f"tensor should have 1 dimension instead of {tensor.dim()}")
    reach = dilation * (size - 1) + 1
    if tensor.numel() < reach:
        return tensor.new_empty((0, size))
    return tensor.unfold(0, reach, step)[:, ::dilation]


class _Times:
    """The times of the frames of each film, as a data set, so that workers can share the films."""

    def __init__(self, video_paths):
        self.video_paths = video_paths

    def __len__(self):
        return len(self.video_paths)

    def __getitem__(self, index):
        return read_video_timestamps(self.video_paths[index])


def _as_it_is(batch):
    return batch


class VideoClips:
    """All clips of `clip_length_in_frames` of these films, `frames_between_clips` apart, at `frame_rate` a second (the films' own by default).

    `_precomputed_metadata` is the `metadata` of another one. PyAV reads pictures as they are: sizes and numbers of samples and channels
    must be 0, else get_clip raises ValueError.
    """

    def __init__(self, video_paths, clip_length_in_frames=16, frames_between_clips=1, frame_rate=None, _precomputed_metadata=None, num_workers=0,
                 _video_width=0, _video_height=0, _video_min_dimension=0, _video_max_dimension=0, _audio_samples=0, _audio_channels=0, output_format="THWC"):
        self.video_paths, self.num_workers = video_paths, num_workers
        self._wanted = {"_video_width": _video_width, "_video_height": _video_height, "_video_min_dimension": _video_min_dimension,
                        "_video_max_dimension": _video_max_dimension, "_audio_samples": _audio_samples, "_audio_channels": _audio_channels}
        self.output_format = output_format.upper()
        if self.output_format not in ("THWC", "TCHW"):
            raise ValueError(f"output_format should be either 'THWC' or 'TCHW', got {output_format}.")
        if _precomputed_metadata is None:
            self._read_times()
        else:
            self.video_paths = _precomputed_metadata["video_paths"]
            self.video_pts, self.video_fps = _precomputed_metadata["video_pts"], _precomputed_metadata["video_fps"]
            assert len(self.video_paths) == len(self.video_pts) == len(self.video_fps)
        self.compute_clips(clip_length_in_frames, frames_between_clips, frame_rate)

    def _read_times(self):
        self.video_pts, self.video_fps = [], []
        for batch in torch.utils.data.DataLoader(_Times(self.video_paths), batch_size=16, num_workers=self.num_workers, collate_fn=_as_it_is):
            for times, rate in batch:
                self.video_pts.append(torch.as_tensor(times, dtype=torch.long))
                self.video_fps.append(rate)

    @property
    def metadata(self):
        """What makes another one without reading the films."""
        return {"video_paths": self.video_paths, "video_pts": self.video_pts, "video_fps": self.video_fps}

    def subset(self, indices):
        """The clips of some of the films."""
        chosen = {name: [values[i] for i in indices] for name, values in self.metadata.items()}
        return type(self)(chosen["video_paths"], self.num_frames, self.step, self.frame_rate, _precomputed_metadata=chosen, num_workers=self.num_workers,
                          output_format=self.output_format, **self._wanted)

    @staticmethod
    def compute_clips_for_video(video_pts, num_frames, step, fps, frame_rate=None):
        """(times (clips, frames), for each clip which of the frames that lie between its ends belong to it)."""
        fps = 1 if fps is None else fps
        frame_rate = fps if frame_rate is None else frame_rate
        chosen = VideoClips._resample_video_idx(math.floor(len(video_pts) * (float(frame_rate) / fps)), fps, frame_rate)
        clips = unfold(video_pts[chosen], num_frames, step)
        if not clips.numel():
            warnings.warn("There aren't enough frames in the current video to get a clip for the given clip length and frames between clips. "
                          "The video (and potentially others) will be skipped.", stacklevel=3)
        return clips, [chosen] * len(clips) if isinstance(chosen, slice) else unfold(chosen, num_frames, step)

    @staticmethod
    def _resample_video_idx(num_frames, original_fps, new_fps):
        step = float(original_fps) / new_fps
        if step.is_integer():
            return slice(None, None, int(step))
        return (torch.arange(num_frames, dtype=torch.float32) * step).floor().to(torch.int64)

    def compute_clips(self, num_frames, step, frame_rate=None):
        """Find the clips anew."""
        self.num_frames, self.step, self.frame_rate = num_frames, step, frame_rate
        found = [self.compute_clips_for_video(times, num_frames, step, rate, frame_rate) for times, rate in zip(self.video_pts, self.video_fps)]
        self.clips, self.resampling_idxs = [clips for clips, _ in found], [chosen for _, chosen in found]
        self.cumulative_sizes, total = [], 0
        for clips in self.clips:
            total += len(clips)
            self.cumulative_sizes.append(total)

    def __len__(self):
        return self.num_clips()

    def num_videos(self):
        """How many films."""
        return len(self.video_paths)

    def num_clips(self):
        """How many clips."""
        return self.cumulative_sizes[-1]

    def get_clip_location(self, idx):
        """(number of the film, number of the clip in it)."""
        film = bisect.bisect_right(self.cumulative_sizes, idx)
        return film, idx - (self.cumulative_sizes[film - 1] if film else 0)

    def get_clip(self, idx):
        """(frames, sound, information, number of the film). Raises IndexError, and ValueError for sizes that PyAV doesn't know."""
        if idx >= self.num_clips():
            raise IndexError(f"Index {idx} out of range ({self.num_clips()} number of clips)")
        for name, value in self._wanted.items():
            if value != 0:
                raise ValueError(f"pyav backend doesn't support {name} != 0")
        film, clip = self.get_clip_location(idx)
        times = self.clips[film][clip]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The pts_unit 'pts'")  # ticks of the film itself are exact
            video, audio, info = read_video(self.video_paths[film], times[0].item(), times[-1].item())
        if self.frame_rate is not None:
            chosen = self.resampling_idxs[film][clip]
            video = video[chosen if isinstance(chosen, slice) else chosen - chosen[0]]
            info["video_fps"] = self.frame_rate
        assert len(video) == self.num_frames, f"{tuple(video.shape)} x {self.num_frames}"
        return video.permute(0, 3, 1, 2) if self.output_format == "TCHW" else video, audio, info, film
