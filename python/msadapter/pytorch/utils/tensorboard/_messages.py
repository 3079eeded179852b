"""Protocol buffers of TensorBoard's files, as dictionaries: `encode("Event", {"step": 3})`.

Sources: the .proto files of TensorBoard (tensorboard/compat/proto, tensorboard/plugins) and the encoding's description at protobuf.dev.
"""

import struct

# message: fields as name=number:type; "*" is a list, "!" is written even when it is zero (one of several alternatives).
_FIELDS = {name: {field: (int(number), kind.strip("*!"), "*" in kind, "!" in kind) for field, number, kind in
                  ((*part.split(":")[0].split("="), part.split(":")[1]) for part in text.split())} for name, text in {
    "Event": "wall_time=1:double step=2:int file_version=3:text! summary=5:Summary! session_log=7:SessionLog!",
    "SessionLog": "status=1:int",
    "Summary": "value=1:Value*",
    "Value": "tag=1:text simple_value=2:float! image=4:Image! histo=5:Histogram! audio=6:Audio! tensor=8:Tensor! metadata=9:Metadata",
    "Image": "height=1:int width=2:int colorspace=3:int encoded_image_string=4:text",
    "Audio": "sample_rate=1:float num_channels=2:int length_frames=3:int encoded_audio_string=4:text content_type=5:text",
    "Histogram": "min=1:double max=2:double num=3:double sum=4:double sum_squares=5:double bucket_limit=6:double* bucket=7:double*",
    "Metadata": "plugin_data=1:PluginData display_name=2:text summary_description=3:text",
    "PluginData": "plugin_name=1:text content=2:text",
    "Tensor": "dtype=1:int tensor_shape=2:Shape float_val=5:float* double_val=6:double* string_val=8:text*",
    "Shape": "dim=2:Dim*",
    "Dim": "size=1:int",
    "PrCurve": "version=1:int num_thresholds=2:int",
    "Mesh": "version=1:int name=2:text content_type=3:int json_config=5:text shape=6:int* components=7:int",
    "Layout": "version=1:int category=2:Category*",
    "Category": "title=1:text chart=2:Chart*",
    "Chart": "title=1:text multiline=2:Multiline! margin=3:Margin!",
    "Multiline": "tag=1:text*",
    "Margin": "series=1:Series*",
    "Series": "value=1:text lower=2:text upper=3:text",
    "HParams": "version=1:int experiment=2:Experiment! session_start_info=3:Start! session_end_info=4:End!",
    "Experiment": "hparam_infos=4:HParamInfo* metric_infos=5:MetricInfo*",
    "HParamInfo": "name=1:text type=4:int domain_discrete=5:ListValue!",
    "MetricInfo": "name=1:MetricName",
    "MetricName": "tag=2:text",
    "Start": "hparams=1:Entry*",
    "Entry": "key=1:text value=2:Any",
    "Any": "number_value=2:double! string_value=3:text! bool_value=4:int!",
    "ListValue": "values=1:Any*",
    "End": "status=1:int",
}.items()}
_PACKED = {"double": "d", "float": "f"}


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, wire, payload):
    return _varint(number << 3 | wire) + payload


def _block(number, payload):
    return _field(number, 2, _varint(len(payload)) + payload)


def _one(number, kind, value):
    if kind == "double":
        return _field(number, 1, struct.pack("<d", value))
    if kind == "float":
        return _field(number, 5, struct.pack("<f", value))
    if kind == "int":
        return _field(number, 0, _varint(int(value)))
    if kind == "text":
        return _block(number, value.encode() if isinstance(value, str) else bytes(value))
    return _block(number, encode(kind, value))


def encode(message, values):
    """The bytes of a message. Raises KeyError for a field that it does not have."""
    fields = _FIELDS[message]
    out = []
    for name, value in sorted(values.items(), key=lambda item: fields[item[0]][0]):
        number, kind, many, always = fields[name]
        if value is None:
            continue
        if not many:
            if always or value or isinstance(value, dict):
                out.append(_one(number, kind, value))
        elif kind in _PACKED:
            if len(value):
                out.append(_block(number, struct.pack(f"<{len(value)}{_PACKED[kind]}", *value)))
        elif kind == "int":
            if len(value):
                out.append(_block(number, b"".join(map(_varint, value))))
        else:
            out += [_one(number, kind, item) for item in value]
    return b"".join(out)
