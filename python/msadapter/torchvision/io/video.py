"""Films through PyAV. Without it, or with one that is too old, everything here that opens a film raises ImportError."""

import math
import os
import warnings
from fractions import Fraction

from msadapter import pytorch as torch

_HOW_TO_GET = "See https://github.com/mikeboers/PyAV#installation for instructions on how to\ninstall PyAV on your system.\n"
_EXTRA = 5  # frames read past the end: they may arrive out of order


def _pyav():
    """The module av. Raises ImportError."""
    try:
        import av
    except ImportError:
        raise ImportError("PyAV is not installed, and is necessary for the video operations in torchvision.\n" + _HOW_TO_GET) from None
    if not hasattr(av, "VideoFrame") or not hasattr(av.VideoFrame, "pict_type"):
        raise ImportError("Your version of PyAV is too old for the necessary video operations in torchvision.\n" + _HOW_TO_GET)
    av.logging.set_level(av.logging.ERROR)
    return av


def _errors(av):
    """What PyAV raises for files that it can't read; the name changed with version 14."""
    return getattr(av, "FFmpegError", None) or av.AVError


class Timebase:
    """Seconds of one tick, as a fraction."""

    __slots__ = ("numerator", "denominator")

    def __init__(self, numerator, denominator):
        self.numerator, self.denominator = numerator, denominator


class VideoMetaData:
    """What is known of a film: seconds, frames a second, samples a second."""

    __slots__ = ("has_video", "video_timebase", "video_duration", "video_fps", "has_audio", "audio_timebase", "audio_duration", "audio_sample_rate")

    def __init__(self):
        self.has_video, self.video_timebase, self.video_duration, self.video_fps = False, Timebase(0, 1), 0.0, 0.0
        self.has_audio, self.audio_timebase, self.audio_duration, self.audio_sample_rate = False, Timebase(0, 1), 0.0, 0.0


def write_video(filename, video_array, fps, video_codec="libx264", options=None, audio_array=None, audio_fps=None, audio_codec=None, audio_options=None):
    """Write frames (T, H, W, 3) of bytes at `fps` a second, with sound (channels, samples) at `audio_fps`. Raises ImportError without PyAV."""
    av = _pyav()
    frames = torch.as_tensor(video_array, dtype=torch.uint8).contiguous().numpy()
    if isinstance(fps, float):
        fps = round(fps)  # PyAV takes whole numbers and fractions
    with av.open(filename, mode="w") as container:
        stream = container.add_stream(video_codec, rate=fps)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "rgb24" if video_codec == "libx264rgb" else "yuv420p"
        stream.options = options or {}
        if audio_array is not None:
            _write_audio(av, container, audio_array, audio_fps, audio_codec, audio_options)
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _write_audio(av, container, samples, rate, codec, options):
    import numpy

    stream = container.add_stream(codec, rate=rate)
    stream.options = options or {}
    kind = stream.format.name  # such as fltp: the type of a sample, and p for channels one after the other
    dtype = {"dbl": "<f8", "flt": "<f4", "s16": "<i2", "s32": "<i4", "u8": "u1"}[kind.rstrip("p")]
    samples = numpy.ascontiguousarray(torch.as_tensor(samples).numpy().astype(dtype))
    frame = av.AudioFrame.from_ndarray(samples, format=kind, layout="stereo" if samples.shape[0] > 1 else "mono")
    frame.sample_rate = rate
    container.mux(stream.encode(frame))
    container.mux(stream.encode())


def _ticks(start, end, time_base):
    """Seconds as ticks, the end rounded up."""
    return math.floor(start / time_base), end if end == math.inf else math.ceil(end / time_base)


def _frames_between(av, container, stream, start, end, pts_unit):
    """The stream's frames from start to end, by time; the one that is on at the start comes first."""
    if pts_unit == "sec":
        start, end = _ticks(start, end, stream.time_base)
    else:
        warnings.warn("The pts_unit 'pts' gives wrong results. Please use pts_unit 'sec'.", stacklevel=3)
    try:
        container.seek(max(int(start) - 1 - _EXTRA, 0), any_frame=False, backward=True, stream=stream)
    except _errors(av):
        return []
    frames, extra = {}, 0
    try:
        for frame in container.decode(stream):
            if frame.pts is None:
                continue
            frames[frame.pts] = frame
            if frame.pts >= end:
                extra += 1
                if extra > _EXTRA:
                    break
    except _errors(av):
        pass  # what could be read is what there is
    chosen = [frames[pts] for pts in sorted(frames) if start <= pts <= end]
    earlier = [pts for pts in frames if pts < start]
    if start > 0 and start not in frames and earlier:
        chosen.insert(0, frames[max(earlier)])
    return chosen


def _cut_audio(samples, frames, start, end):
    """Samples (channels, N) of frames without what lies before start and after end, in ticks."""
    first, last = frames[0].pts, frames[-1].pts
    per_sample = (last - first + 1) / samples.shape[1]
    begin = int((start - first) / per_sample) if first < start else 0
    stop = int((end - last) / per_sample) if last > end else samples.shape[1]
    return samples[:, begin:stop]


def read_video(filename, start_pts=0, end_pts=None, pts_unit="pts", output_format="THWC"):
    """(frames uint8 (T, H, W, C) or with "TCHW" (T, C, H, W), sound (channels, samples), {"video_fps", "audio_fps"}) from start to end.

    Times are ticks of the stream, or seconds with pts_unit "sec". Raises ImportError without PyAV, RuntimeError for a missing file, ValueError
    for other formats and an end before the start. A damaged file gives what can be read of it.
    """
    output_format = output_format.upper()
    if output_format not in ("THWC", "TCHW"):
        raise ValueError(f"output_format should be either 'THWC' or 'TCHW', got {output_format}.")
    if not os.path.exists(filename):
        raise RuntimeError(f"File not found: {filename}")
    av = _pyav()
    import numpy

    end_pts = math.inf if end_pts is None else end_pts
    if end_pts < start_pts:
        raise ValueError(f"end_pts should be larger than start_pts, got start_pts={start_pts} and end_pts={end_pts}")
    info, video, audio, audio_base = {}, [], [], None
    try:
        with av.open(str(filename), metadata_errors="ignore") as container:
            if container.streams.video:
                stream = container.streams.video[0]
                video = [frame.to_rgb().to_ndarray() for frame in _frames_between(av, container, stream, start_pts, end_pts, pts_unit)]
                if stream.average_rate is not None:
                    info["video_fps"] = float(stream.average_rate)
            if container.streams.audio:
                stream = container.streams.audio[0]
                audio_base = stream.time_base
                audio = _frames_between(av, container, stream, start_pts, end_pts, pts_unit)
                info["audio_fps"] = stream.rate
    except _errors(av):
        pass
    frames = torch.as_tensor(numpy.stack(video)) if video else torch.empty((0, 1, 1, 3), dtype=torch.uint8)
    if audio:
        start, end = _ticks(start_pts, end_pts, audio_base) if pts_unit == "sec" else (start_pts, end_pts)
        samples = _cut_audio(torch.as_tensor(numpy.concatenate([frame.to_ndarray() for frame in audio], 1)), audio, start, end)
    else:
        samples = torch.empty((1, 0), dtype=torch.float32)
    return frames.permute(0, 3, 1, 2) if output_format == "TCHW" else frames, samples, info


def read_video_timestamps(filename, pts_unit="pts"):
    """(times of all frames, frames a second): ticks, or fractions of seconds with pts_unit "sec". Warns of damaged files. Raises ImportError."""
    av = _pyav()
    times, rate, time_base = [], None, Fraction(0, 1)
    try:
        with av.open(str(filename), metadata_errors="ignore") as container:
            if container.streams.video:
                stream = container.streams.video[0]
                time_base = stream.time_base
                # libavcodec's own files tell the time on the packets; others have to be decoded.
                own = b"Lavc" in (stream.codec_context.extradata or b"")
                try:
                    times = [item.pts for item in (container.demux(stream) if own else container.decode(stream)) if item.pts is not None]
                except _errors(av):
                    warnings.warn(f"Failed decoding frames for file {filename}", stacklevel=2)
                rate = float(stream.average_rate) if stream.average_rate is not None else None
    except _errors(av) as error:
        warnings.warn(f"Failed to open container for {filename}; Caught error: {error}", RuntimeWarning, stacklevel=2)
    times.sort()
    return [time * time_base for time in times] if pts_unit == "sec" else times, rate


class VideoReader:
    """One stream of a film, frame by frame: {"data": uint8 (3, H, W) or samples (N, channels), "pts": seconds}.

    `stream` is "video" or "audio", with ":n" for the n-th of its kind; `num_threads` 0 leaves the number to the codec. Raises ImportError
    without PyAV, RuntimeError for files that can't be opened, missing streams and other devices than the CPU.
    """

    def __init__(self, path, stream="video", num_threads=0, device="cpu"):
        if torch.device(device).type == "cuda":
            raise RuntimeError("Not compiled with GPU decoder support.")
        self._av = _pyav()
        self._threads = num_threads
        try:
            self._container = self._av.open(str(path), metadata_errors="ignore")
        except (OSError, *[_errors(self._av)]) as error:
            raise RuntimeError(f"cannot open {path}: {error}") from None
        if not self.set_current_stream(stream):
            raise RuntimeError(f"{path} has no stream {stream!r}")

    def set_current_stream(self, stream):
        """Choose a stream. False when there is none of this kind and number. Raises RuntimeError for another kind."""
        kind, _, number = stream.partition(":")
        if kind not in ("video", "audio"):
            raise RuntimeError(f"Expected one of [audio, video] {kind}")
        if number and not number.isdecimal():
            raise RuntimeError(f"Invalid stream string: '{stream}'")
        streams = [one for one in self._container.streams if one.type == kind]
        index = int(number or 0)
        if index >= len(streams):
            return False
        self._stream = streams[index]
        if not self._stream.codec_context.is_open:
            self._stream.codec_context.thread_count = self._threads
            self._stream.codec_context.thread_type = "AUTO"
        self.seek(0.0)
        return True

    def __iter__(self):
        return self

    def __next__(self):
        try:
            for frame in self._frames:
                time = float(frame.pts * frame.time_base) if frame.pts is not None else 0.0
                if time >= self._from:
                    data = frame.to_rgb().to_ndarray().transpose(2, 0, 1) if self._stream.type == "video" else frame.to_ndarray().T
                    return {"data": torch.as_tensor(data.copy()), "pts": time}
        except _errors(self._av):
            pass  # the end of what can be read
        raise StopIteration

    def seek(self, time_s, keyframes_only=False):
        """Go to the first frame at `time_s` seconds or later, or to the keyframe before it. Returns the reader."""
        self._from = -math.inf if keyframes_only else time_s
        self._container.seek(max(int(time_s / self._stream.time_base), 0), any_frame=False, backward=True, stream=self._stream)
        self._frames = self._container.decode(self._stream)
        return self

    def get_metadata(self):
        """{"video": {"duration": [seconds], "fps": [...]}, "audio": {"duration": [...], "framerate": [...]}, ...}, one entry a stream."""
        found = {"video": {"duration": [], "fps": []}, "audio": {"duration": [], "framerate": []}, "subtitles": {"duration": []}, "cc": {"duration": []}}
        for stream in self._container.streams:
            if stream.type in ("video", "audio"):
                name, rate = ("fps", stream.average_rate) if stream.type == "video" else ("framerate", stream.rate)
                found[stream.type]["duration"].append(float(stream.duration * stream.time_base) if stream.duration is not None else 0.0)
                found[stream.type][name].append(float(rate) if rate is not None else 0.0)
        return found
