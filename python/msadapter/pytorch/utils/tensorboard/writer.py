"""SummaryWriter, and the writer of one file."""

import os
import socket
import time
from datetime import datetime

import numpy as np

from msadapter.pytorch.utils.tensorboard import summary
from msadapter.pytorch.utils.tensorboard._records import EventFile

_POSITIVE = [1e-12]
while _POSITIVE[-1] * 1.1 < 1e20:
    _POSITIVE.append(_POSITIVE[-1] * 1.1)
_BINS = [-v for v in reversed(_POSITIVE)] + [0] + _POSITIVE  # TensorBoard's own for histograms


class FileWriter:
    """Write events to a file in log_dir."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFile(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        return self.event_writer.log_dir

    def add_event(self, event, step=None, walltime=None):
        """Write an event, a dictionary, with its step and its time in seconds (now unless given)."""
        event = {**event, "wall_time": time.time() if walltime is None else walltime}
        if step is not None:
            event["step"] = int(step)
        self.event_writer.add(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write a summary of `msadapter.pytorch.utils.tensorboard.summary`."""
        self.add_event({"summary": summary}, global_step, walltime)

    def flush(self):
        self.event_writer.flush()

    def close(self):
        self.event_writer.close()

    def reopen(self):
        """Begin another file."""
        self.event_writer.close()
        self.event_writer.open()


class SummaryWriter:
    """Write what a training run tells into a directory for TensorBoard: runs/DATE_HOST and `comment`, unless log_dir is given.

    `purge_step`: TensorBoard forgets what an earlier run wrote from this step on. Events are flushed when max_queue of them wait or flush_secs have
    passed. The methods add_* take a tag, what to show, a global_step, and a walltime in seconds.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        self.log_dir = str(log_dir) if log_dir else os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = purge_step, max_queue, flush_secs, filename_suffix
        self.file_writer = self.all_writers = None
        self.default_bins = _BINS
        self._embeddings = []
        self._get_file_writer()

    def _get_file_writer(self):
        if self.all_writers is None:
            self.file_writer = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event({"file_version": "brain.Event:2"}, self.purge_step)
                self.file_writer.add_event({"session_log": {"status": 1}}, self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _add(self, made, global_step, walltime):
        self._get_file_writer().add_summary(made, global_step, walltime)

    def get_logdir(self):
        """The directory."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number, as a tensor with new_style (double_precision: of float64)."""
        self._add(summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers for one chart, each in a run of its own."""
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """The distribution of values; `bins` as numpy.histogram takes them, or TensorBoard's own. ValueError without values."""
        self._add(summary.histogram(tag, values, self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins, max_bins),
                  global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None):
        """A distribution from its parts; each bucket goes from the limit before its own. ValueError for lists of different lengths."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture of uint8, or of values in [0, 1]; dataformats names its dimensions."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Pictures, in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None):
        """A picture with boxes (N, 4) of left, top, right and bottom, and their labels."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """Matplotlib's figure, or a list of them, as pictures; closed afterwards unless `close` is false."""
        many = isinstance(figure, list)
        pictures = [_figure(each, close) for each in (figure if many else [figure])]
        self.add_image(tag, np.stack(pictures) if many else pictures[0], global_step, walltime, dataformats="NCHW" if many else "CHW")

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Videos (N, T, C, H, W), side by side, as an animated GIF."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound of one channel, values in [-1, 1], sample_rate in hertz."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt):
        """Raises NotImplementedError."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph: graphs are not written")

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Raises NotImplementedError."""
        raise NotImplementedError("SummaryWriter.add_graph: graphs are not written")

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points (N, D) for the projector, with a label (metadata, N) and a picture (label_img, (N, C, H, W)) for each.

        metadata_header names columns where each label is a list. Raises AssertionError for numbers of labels or pictures other than N.
        """
        mat = summary.make_np(mat)
        assert mat.ndim == 2, "mat should be 2D, where mat.size(0) is the number of data points"
        step = str(0 if global_step is None else global_step).zfill(5)
        folder = f"{step}/{tag.replace('%', '%25').replace('/', '%2f').replace(chr(92), '%5c')}"
        path = os.path.join(self.log_dir, folder)
        if os.path.isdir(path):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        os.makedirs(path, exist_ok=True)
        info = f'  tensor_name: "{tag}:{step}"\n'
        if metadata is not None:
            assert mat.shape[0] == len(metadata), "#labels should equal with #data points"
            if metadata_header:
                assert len(metadata_header) == len(metadata[0]), "len of header must be equal to the number of columns in metadata"
                metadata = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]]
            _write(path, "metadata.tsv", "".join(f"{row}\n" for row in metadata))
            info += f'  metadata_path: "{folder}/metadata.tsv"\n'
        if label_img is not None:
            assert mat.shape[0] == label_img.shape[0], "#images should equal with #data points"
            _write_sprite(path, summary.make_np(label_img))
            info += (f'  sprite {{\n    image_path: "{folder}/sprite.png"\n    single_image_dim: {label_img.shape[3]}\n'
                     f'    single_image_dim: {label_img.shape[2]}\n  }}\n')
        _write(path, "tensors.tsv", "".join("\t".join(str(x.item()) for x in row) + "\n" for row in mat))
        self._embeddings.append(f'embeddings {{\n{info}  tensor_path: "{folder}/tensors.tsv"\n}}\n')
        _write(self.log_dir, "projector_config.pbtxt", "".join(self._embeddings))

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """The precision-recall curve of predictions in [0, 1] for labels 0 and 1."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall,
                         global_step=None, num_thresholds=127, weights=None, walltime=None):
        """A precision-recall curve from its values at each threshold."""
        self._add(summary.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall,
                                       num_thresholds, weights), global_step, walltime)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """A chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """A chart of a scalar with its margin: tags of value, lower and upper bound."""
        assert len(tags) == 3
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout):
        """Charts of scalars: {category: {title: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """A 3-D mesh: vertices (B, N, 3), colors (B, N, 3), faces (B, M, 3)."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None):
        """Hyperparameters and what they led to, in a run of its own. Raises TypeError for what are no dictionaries."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        self._get_file_writer()
        with SummaryWriter(log_dir=os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for part in parts:
                writer._add(part, None, None)
            for key, value in metric_dict.items():
                writer.add_scalar(key, value)

    def flush(self):
        """Let the files hold all that was added."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Close the files; adding more begins others."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def _figure(figure, close):
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
    if close:
        plt.close(figure)
    return picture


def _write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def _write_sprite(folder, images):
    """The pictures, in [0, 1], in a square of rows, as the projector wants them."""
    from PIL import Image

    grid = summary.make_grid(images, ncols=int(np.ceil(images.shape[0] ** 0.5))).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[:grid.shape[0]] = grid
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(os.path.join(folder, "sprite.png"))
