"""Summaries, as dictionaries for `_messages.encode`: what TensorBoard's plugins for scalars, histograms, pictures, sound, ... expect."""

import io
import json
import wave

import numpy as np

from msadapter import pytorch as torch
from msadapter.pytorch.utils.tensorboard._messages import encode

_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # numbers of dtypes
_TEXT, _BOOL, _NUMBER = 1, 2, 3  # of types of hyperparameters
_MOST_THRESHOLDS = 127


def make_np(x):
    """An array of a tensor, an array or a number. Raises NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x) and not isinstance(x, str):
        return np.array([x])
    if isinstance(x, torch.Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype is torch.bfloat16 else x).numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def _value(tag, plugin=None, content=b"", **what):
    metadata = None if plugin is None else {"plugin_data": {"plugin_name": plugin, "content": content}}
    return {"value": [{"tag": tag, "metadata": metadata, **what}]}


def _tensor(dtype, shape, **values):
    return {"dtype": dtype, "tensor_shape": {"dim": [{"size": size} for size in shape]}, **values}


def scalar(name, tensor, collections=None, new_style=False, double_precision=False):
    """One number. Raises AssertionError for a tensor of more elements."""
    tensor = make_np(tensor).squeeze()
    assert tensor.ndim == 0, f"Tensor should contain one element (0 dimensions). Was given size: {tensor.size} and {tensor.ndim} dimensions."
    number = float(tensor)
    if not new_style:
        return _value(name, simple_value=number)
    return _value(name, "scalars", tensor={"dtype": _DOUBLE, "double_val": [number]} if double_precision else {"dtype": _FLOAT, "float_val": [number]})


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram from its parts."""
    return _value(name, histo={"min": min, "max": max, "num": num, "sum": sum, "sum_squares": sum_squares, "bucket_limit": bucket_limits,
                               "bucket": bucket_counts})


def histogram(name, values, bins, max_bins=None):
    """The histogram of values. Raises ValueError without any."""
    values = make_np(values).astype(float).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = np.pad(counts, (0, step - len(counts) % step)) if len(counts) % step else counts
        counts = counts.reshape(-1, step).sum(axis=-1)
        limits = np.append(limits[:-1:step], limits[-1])
    # From the bin before the first that holds something to the last that does.
    held = np.flatnonzero(counts)
    if not held.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(held[0]), int(held[-1])
    counts = counts[first - 1:last + 1] if first else np.concatenate([[0], counts[:last + 1]])
    return histogram_raw(name, values.min(), values.max(), len(values), values.sum(), values.dot(values), limits[first:last + 2].tolist(), counts.tolist())


def make_grid(images, ncols=8):
    """(N, 1 or 3, H, W) as one picture (3, H * rows, W * ncols)."""
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    assert images.ndim == 4 and images.shape[1] == 3
    n, _, height, width = images.shape
    ncols = min(n, ncols)
    canvas = np.zeros((3, height * -(-n // ncols), width * ncols), dtype=images.dtype)
    for i, picture in enumerate(images):
        y, x = divmod(i, ncols)
        canvas[:, y * height:(y + 1) * height, x * width:(x + 1) * width] = picture
    return canvas


def convert_to_HWC(tensor, dataformats):
    """An array whose dimensions are named by letters of NCHW, as (H, W, channels). Raises AssertionError for names that do not fit."""
    assert len(set(dataformats)) == len(dataformats), f"You can not use the same dimension shordhand twice. input_format: {dataformats}"
    assert tensor.ndim == len(dataformats), ("size of input tensor and input format are different. "
                                             f"tensor shape: {tensor.shape}, input_format: {dataformats}")
    order = dataformats.upper()
    if len(order) == 4:
        return make_grid(tensor.transpose([order.find(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(order) == 3:
        tensor = tensor.transpose([order.find(c) for c in "HWC"])
        return np.concatenate([tensor] * 3, 2) if tensor.shape[2] == 1 else tensor
    return np.stack([tensor.transpose([order.find(c) for c in "HW"])] * 3, 2)


def _bytes(array):
    """Values of [0, 1], or bytes already, as bytes."""
    return (array.astype(np.float32) * (1 if array.dtype == np.uint8 else 255)).astype(np.uint8)


def _png(array, rescale=1, boxes=None, labels=None):
    from PIL import Image, ImageDraw, ImageFont

    height, width, channels = array.shape
    picture = Image.fromarray(array[:, :, 0] if channels == 1 else array)
    draw = ImageDraw.Draw(picture)
    for i, (left, top, right, bottom) in enumerate(() if boxes is None else boxes):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        if labels is not None and labels[i]:
            font = ImageFont.load_default()
            _, _, wide, high = draw.textbbox((0, 0), labels[i], font=font)
            margin = np.ceil(0.05 * high)
            draw.rectangle([(left, bottom - high - 2 * margin), (left + wide, bottom)], fill="Red")
            draw.text((left + margin, bottom - high - margin), labels[i], fill="black", font=font)
    picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return {"height": height, "width": width, "colorspace": channels, "encoded_image_string": file.getvalue()}


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """A picture, or several in a grid, of values in [0, 1] or uint8."""
    return _value(tag, image=_png(_bytes(convert_to_HWC(make_np(tensor), dataformats)), rescale))


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """A picture with boxes (N, 4) of left, top, right, bottom drawn on it."""
    return _value(tag, image=_png(_bytes(convert_to_HWC(make_np(tensor_image), dataformats)), rescale, make_np(tensor_boxes), labels))


def video(tag, tensor, fps=4):
    """Videos (N, T, C, H, W) side by side, as a GIF of `fps` pictures in a second. Raises AssertionError for other dimensions."""
    from PIL import Image

    array = make_np(tensor)
    assert array.ndim == 5, f"video: expected 5 dimensions (N, T, C, H, W), but got {array.ndim}"
    array = np.float32(array) / 255.0 if array.dtype == np.uint8 else array
    n, t, c, h, w = array.shape
    whole = 1 << (n - 1).bit_length()  # the next power of two
    array = np.concatenate((array, np.zeros((whole - n, t, c, h, w))))
    rows = 1 << (n.bit_length() - 1) // 2
    frames = array.reshape(rows, whole // rows, t, c, h, w).transpose(2, 0, 4, 1, 5, 3).reshape(t, rows * h, whole // rows * w, c)
    pictures = [Image.fromarray(frame[:, :, 0] if c == 1 else frame) for frame in _bytes(frames)]
    file = io.BytesIO()
    pictures[0].save(file, format="GIF", save_all=True, append_images=pictures[1:], duration=1000 / fps, loop=0)
    return _value(tag, image={"height": rows * h, "width": whole // rows * w, "colorspace": c, "encoded_image_string": file.getvalue()})


def audio(tag, tensor, sample_rate=44100):
    """Sound of one channel, values in [-1, 1]. Raises AssertionError for more dimensions."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    assert array.ndim == 1, "input tensor should be 1 dimensional."
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes((array * np.iinfo(np.int16).max).astype("<i2").tobytes())
    return _value(tag, audio={"sample_rate": sample_rate, "num_channels": 1, "length_frames": array.shape[-1], "encoded_audio_string": file.getvalue(),
                              "content_type": "audio/wav"})


def custom_scalars(layout):
    """Charts of several scalars: {category: {title: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}."""
    categories = []
    for category, charts in layout.items():
        listed = []
        for title, (kind, tags, *_) in charts.items():
            if kind == "Margin":
                assert len(tags) == 3
                listed.append({"title": title, "margin": {"series": [dict(zip(("value", "lower", "upper"), tags))]}})
            else:
                listed.append({"title": title, "multiline": {"tag": tags}})
        categories.append({"title": category, "chart": listed})
    return _value("custom_scalars__config__", "custom_scalars", tensor=_tensor(_STRING, (), string_val=[encode("Layout", {"category": categories})]))


def text(tag, text):
    """A text, shown as Markdown."""
    return _value(tag + "/text_summary", "text", tensor=_tensor(_STRING, (1,), string_val=[text]))


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None):
    """A precision-recall curve from its counts at each threshold."""
    data = np.stack([make_np(x) for x in (tp, fp, tn, fn, precision, recall)])
    return _value(tag, "pr_curves", encode("PrCurve", {"num_thresholds": min(num_thresholds, _MOST_THRESHOLDS)}),
                  tensor=_tensor(_FLOAT, data.shape, float_val=data.reshape(-1).tolist()))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """The precision-recall curve of predictions in [0, 1] for labels 0 and 1."""
    labels, predictions = make_np(labels), make_np(predictions)
    n = min(num_thresholds, _MOST_THRESHOLDS)
    places = np.int32(np.floor(predictions * (n - 1)))
    hits, weight = labels.astype(np.float64), 1.0 if weights is None else weights
    tp, fp = (np.cumsum(np.histogram(places, bins=n, range=(0, n - 1), weights=part * weight)[0][::-1])[::-1] for part in (hits, 1.0 - hits))
    tn, fn = fp[0] - fp, tp[0] - tp
    return pr_curve_raw(tag, tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn), n)


def mesh(tag, vertices, colors, faces, config_dict, display_name=None, description=None):
    """A 3-D mesh or cloud of points: vertices (B, N, 3), colors (B, N, 3), faces (B, M, 3); the last two may be None."""
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    parts = [(name, number, torch.as_tensor(t)) for name, number, t in (("VERTEX", 1, vertices), ("FACE", 2, faces), ("COLOR", 3, colors)) if t is not None]
    components = sum(1 << number for _, number, _ in parts)
    values = []
    for name, number, t in parts:
        content = encode("Mesh", {"name": tag, "content_type": number, "json_config": config, "shape": list(t.shape), "components": components})
        values.append({"tag": f"{tag}_{name}", "tensor": _tensor(_FLOAT, t.shape, float_val=t.reshape(-1).tolist()),
                       "metadata": {"plugin_data": {"plugin_name": "mesh", "content": content}, "display_name": display_name,
                                    "summary_description": description}})
    return {"value": values}


def _any(value):
    return {"string_value": value} if isinstance(value, str) else {"bool_value": value} if isinstance(value, bool) else {"number_value": float(value)}


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """(experiment, session start, session end) of hyperparameters and the names of metrics.

    Raises TypeError for what are no dictionaries or domains of other types, ValueError for values that are neither numbers, texts, bools nor tensors.
    """
    for name, value in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict), ("hparam_domain_discrete", hparam_domain_discrete or {})):
        if not isinstance(value, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    for key, domain in domains.items():
        if key not in hparam_dict or not isinstance(domain, list) or not all(isinstance(d, type(hparam_dict[key])) for d in domain):
            raise TypeError(f"parameter: hparam_domain_discrete[{key}] should be a list of same type as hparam_dict[{key}].")
    start, infos = [], []
    for key, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, torch.Tensor):
            value = float(make_np(value).reshape(-1)[0])
        if not isinstance(value, (int, float, str)):
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        value = float(value) if isinstance(value, bool) else value  # as PyTorch writes them
        start.append({"key": key, "value": _any(value)})
        infos.append({"name": key, "type": _TEXT if isinstance(value, str) else _NUMBER,
                      "domain_discrete": {"values": [_any(float(d) if isinstance(d, bool) else d) for d in domains[key]]} if key in domains else None})
    metrics = [{"name": {"tag": key}} for key in metric_dict]
    return tuple(_value(f"_hparams_/{tag}", "hparams", encode("HParams", content)) for tag, content in (
        ("experiment", {"experiment": {"hparam_infos": infos, "metric_infos": metrics}}), ("session_start_info", {"session_start_info": {"hparams": start}}),
        ("session_end_info", {"session_end_info": {"status": 1}})))
