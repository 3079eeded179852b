"""Weights that models can be made with, and the functions that make models.

weights.txt lists the published weights, one a line: enum, entry (* marks DEFAULT), file, preprocessing, classes (their number, or whose names they have
in _meta.py), parameters, smallest picture, and what was measured.
"""

import enum
import inspect
import pathlib
import warnings
from dataclasses import dataclass, fields

from msadapter.torchvision.models import _meta as _names
from msadapter.torchvision.transforms import _presets

__all__ = ["WeightsEnum", "Weights", "get_weight"]

_URL = "https://download.pytorch.org/models/"


@dataclass
class Weights:
    """Where weights are (url), how pictures are prepared for them (transforms, a function that makes the transform) and what is known of them (meta)."""

    url: str
    transforms: object
    meta: dict

    def __eq__(self, other):
        return self is other  # entries of an enum stay apart

    __hash__ = object.__hash__


class WeightsEnum(enum.Enum):
    """The weights of one model; each entry has the fields of Weights."""

    def __init__(self, value):
        self._value_ = value

    @classmethod
    def verify(cls, obj):
        """`obj` as an entry: None, an entry, or its name. ValueError for unknown names, TypeError for other types."""
        if obj is None or isinstance(obj, cls):
            return obj
        if isinstance(obj, str):
            return cls.from_str(obj.replace(cls.__name__ + ".", ""))
        raise TypeError(f"Invalid Weight class provided; expected {cls.__name__} but received {type(obj).__name__}.")

    @classmethod
    def from_str(cls, value):
        """The entry of this name; ValueError where there is none."""
        if value not in cls.__members__:
            raise ValueError(f"Unknown value '{value}' for {cls.__name__}.")
        return cls.__members__[value]

    def get_state_dict(self, progress):
        """The state dict, from the hub's cache or its url."""
        from msadapter.pytorch.hub import load_state_dict_from_url

        return load_state_dict_from_url(self.url, progress=progress)

    def __repr__(self):
        return f"{type(self).__name__}.{self._name_}"

    def __getattr__(self, name):
        if name in (field.name for field in fields(Weights)):
            return getattr(self._value_, name)
        return super().__getattribute__(name)


def _rows():
    text = (pathlib.Path(__file__).parent / "weights.txt").read_text(encoding="ascii")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def _meta(classes, parameters, smallest, measured):
    meta = {"num_params": int(parameters)}
    if classes in _names.NAMED:
        meta.update(_names.NAMED[classes], num_classes=len(_names.NAMED[classes]["categories"]))
    elif classes != "-":
        meta["num_classes"] = int(classes)
    if smallest != "-":
        meta["min_size"] = (int(smallest), int(smallest))
    meta["_metrics"] = {}
    for item in measured.split(";"):
        where, _, value = item.partition("=")
        data_set, _, metric = where.rpartition("/")
        meta["_metrics"].setdefault(data_set.replace("_", " "), {})[metric] = float(value)
    return meta


_ENUMS = {}


def enums(*names):
    """The enums of these names, made from weights.txt."""
    if not _ENUMS:
        found, defaults = {}, {}
        for name, entry, file, preparation, *facts in _rows():
            weights = Weights(_URL + file, _presets.from_text(preparation), _meta(*facts))
            entries = found.setdefault(name, {})
            entries[entry.rstrip("*")] = weights
            if entry.endswith("*"):
                defaults[name] = weights
        for name, entries in found.items():
            if name in defaults:
                entries["DEFAULT"] = defaults[name]
            _ENUMS[name] = WeightsEnum(name, entries, module=__package__, qualname=name)
    return tuple(_ENUMS[name] for name in names) if len(names) > 1 else _ENUMS[names[0]]


def get_weight(name):
    """The entry of a full name such as "ResNet50_Weights.IMAGENET1K_V1"; ValueError where there is none."""
    if name.count(".") != 1:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    enum_name, value = name.split(".")
    enums("AlexNet_Weights")
    if enum_name not in _ENUMS:
        raise ValueError(f"The weight enum '{enum_name}' for the specific method couldn't be retrieved.")
    return _ENUMS[enum_name].from_str(value)


def override(kwargs, name, value):
    """Sets an argument that the weights decide; ValueError where the caller wants another value."""
    if kwargs.get(name) is None:
        kwargs[name] = value
    if kwargs[name] != value:
        raise ValueError(f"The parameter '{name}' expected value {value} but got {kwargs[name]} instead.")


def legacy(name, names, slots, args, kwargs):
    """The keyword arguments of a call in the manner of torchvision before 0.13, with positional arguments and pretrained=.

    names: the keyword parameters in order. slots: parameter of weights -> (old name, the entry that True stands for, or a function of the old value).
    """
    if len(args) > len(names):
        raise TypeError(f"{name}() takes at most {len(names)} positional arguments but {len(args)} were given")
    if args:
        warnings.warn(f"Using {', '.join(names[:len(args)])} as positional parameter(s) is deprecated since 0.13 and may be removed in the future. "
                      "Please use keyword parameter(s) instead.")
        for given, value in zip(names, args):
            if given in kwargs:
                raise TypeError(f"{name}() got multiple values for argument '{given}'")
            kwargs[given] = value
    for new, (old, default) in slots.items():
        value = kwargs.pop(old, None) if old in kwargs else kwargs.get(new) if isinstance(kwargs.get(new), bool) else None
        if value is None:
            continue
        warnings.warn(f"The parameter '{old}' is deprecated since 0.13 and may be removed in the future, please use '{new}' instead.")
        kwargs[new] = None if not value else default(value) if callable(default) else default
    return kwargs


def builder(name, make, weights, doc, default="IMAGENET1K_V1", prepare=None, finish=None, backbone=None, parameters=(), more=()):
    """The function `name(*, weights=None, progress=True, ..., **kwargs)` that makes a model by make(**kwargs) and loads weights into it.

    prepare(kwargs, weights) sees the arguments first, finish(model, asked, weights) the model with its weights, asked being the caller's arguments.
    default: the entry that pretrained=True stands for, or a function of what stands there instead of True.
    backbone is (enum, entry) for models that have weights_backbone: those are used where weights is None; with a third element, that is used unless
    the caller asks for others. parameters and more are names of further parameters, None unless given, before and behind weights_backbone.
    """
    slots = {"weights": ("pretrained", default if callable(default) else getattr(weights, default, None))}
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter("weights", keyword, default=None), inspect.Parameter("progress", keyword, default=True)]
    if backbone is not None:
        enum_of_backbone, usual = backbone[0], getattr(*backbone[:2])
        slots["weights_backbone"] = ("pretrained_backbone", usual)
        usual = backbone[2] if len(backbone) > 2 else usual
        shown += [inspect.Parameter(each, keyword, default=None) for each in ("num_classes", *parameters)]
        shown.append(inspect.Parameter("weights_backbone", keyword, default=usual))
    shown += [inspect.Parameter(each, keyword, default=None) for each in more]
    names = [parameter.name for parameter in shown]

    def build(*args, **kwargs):
        kwargs = legacy(name, names, slots, args, kwargs)
        chosen = weights.verify(kwargs.pop("weights", None))
        progress = kwargs.pop("progress", True)
        asked = dict(kwargs)
        if backbone is not None:
            chosen_backbone = enum_of_backbone.verify(kwargs.pop("weights_backbone", usual))
            kwargs["weights_backbone"], kwargs["progress"] = None if chosen is not None else chosen_backbone, progress
        if chosen is not None and "num_classes" in chosen.meta:
            override(kwargs, "num_classes", chosen.meta["num_classes"])
        if prepare is not None:
            prepare(kwargs, chosen)
        model = make(**kwargs)
        if chosen is not None:
            model.load_state_dict(chosen.get_state_dict(progress=progress))
            if finish is not None:
                finish(model, asked, chosen)
        return model

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{doc}\n\n    weights: an entry of {weights.__name__} or its name; progress: whether downloads show a bar; the rest goes to the model."
    build.__signature__ = inspect.Signature([*shown, inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)])
    return build
