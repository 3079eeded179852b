"""torch.onnx: what scripts ask without exporting. Writing ONNX files needs a recorded graph and raises NotImplementedError."""

import contextlib
import re
import sys
from enum import IntEnum

__all__ = ["CheckerError", "ExportTypes", "OperatorExportTypes", "OnnxExporterError", "SymbolicContext", "TensorProtoDataType", "TrainingMode", "disable_log",
           "enable_log", "export", "export_to_pretty_string", "is_in_onnx_export", "is_onnx_log_enabled", "log", "register_custom_op_symbolic",
           "select_model_mode_for_export", "set_log_stream", "unregister_custom_op_symbolic"]

OperatorExportTypes = IntEnum("OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0)
TrainingMode = IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", start=0)
TensorProtoDataType = IntEnum("TensorProtoDataType", "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 "
                              "COMPLEX64 COMPLEX128 BFLOAT16", start=0)


class ExportTypes:
    """Forms of a saved model."""

    PROTOBUF_FILE = "Saves model in the specified protobuf file."
    ZIP_ARCHIVE = "Saves model in the specified ZIP file (uncompressed)."
    COMPRESSED_ZIP_ARCHIVE = "Saves model in the specified ZIP file (compressed)."
    DIRECTORY = "Saves model in the specified folder."


class OnnxExporterError(RuntimeError):
    """What goes wrong while a model is exported."""


class CheckerError(OnnxExporterError):
    """The exported model is not valid ONNX."""


class SymbolicContext:
    """What a user's symbolic function is told about the node that it translates."""

    def __init__(self, params_dict, env, cur_node, onnx_block):
        self.params_dict, self.env, self.cur_node, self.onnx_block = params_dict, env, cur_node, onnx_block


def _missing(name):
    raise NotImplementedError(f"torch.onnx.{name}: exporting to ONNX is not implemented")


def export(model, args, f, export_params=True, verbose=False, training=TrainingMode.EVAL, input_names=None, output_names=None,
           operator_export_type=OperatorExportTypes.ONNX, opset_version=None, do_constant_folding=True, dynamic_axes=None,
           keep_initializers_as_inputs=None, custom_opsets=None, export_modules_as_functions=False):
    """Not implemented: raises NotImplementedError."""
    _missing("export")


def export_to_pretty_string(model, args, export_params=True, verbose=False, training=TrainingMode.EVAL, input_names=None, output_names=None,
                            operator_export_type=OperatorExportTypes.ONNX, export_type=None, google_printer=False, opset_version=None,
                            keep_initializers_as_inputs=None, custom_opsets=None, add_node_names=True, do_constant_folding=True, dynamic_axes=None):
    """Not implemented: raises NotImplementedError."""
    _missing("export_to_pretty_string")


def is_in_onnx_export():
    """Whether a model is being exported: no."""
    return False


@contextlib.contextmanager
def select_model_mode_for_export(model, mode):
    """A block in which the model is in evaluation or training mode, as `mode` says, or stays as it is (PRESERVE). Raises TypeError for other modes."""
    if not isinstance(mode, TrainingMode):
        raise TypeError(f"'mode' should be a torch.onnx.TrainingMode enum, but got '{type(mode)}'.")
    before = model.training
    if mode is not TrainingMode.PRESERVE:
        model.train(mode is TrainingMode.TRAINING)
    try:
        yield
    finally:
        if mode is not TrainingMode.PRESERVE:
            model.train(before)


_symbolic = {}  # {opset: {name: function}}


def _check_name(name):
    if not re.fullmatch(r"[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*", name):
        raise OnnxExporterError(f"Failed to register operator {name}. The symbolic name must match the format domain::name, and should start with a letter "
                                "and contain only alphanumerical characters")


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Keep the symbolic function of DOMAIN::NAME for an opset. Raises OnnxExporterError for a name of another form."""
    _check_name(symbolic_name)
    _symbolic.setdefault(opset_version, {})[symbolic_name] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forget a symbolic function. Raises OnnxExporterError for a name of another form."""
    _check_name(symbolic_name)
    _symbolic.get(opset_version, {}).pop(symbolic_name, None)


_log = {"on": False, "stream": "stdout"}


def is_onnx_log_enabled():
    """Whether log() writes."""
    return _log["on"]


def enable_log():
    """Let log() write."""
    _log["on"] = True


def disable_log():
    """Keep log() silent."""
    _log["on"] = False


def set_log_stream(stream_name="stdout"):
    """Where log() writes: "stdout" or "stderr". Raises RuntimeError for others."""
    if stream_name not in ("stdout", "stderr"):
        raise RuntimeError("Only `stdout` and `stderr` are supported as log output stream")
    _log["stream"] = stream_name


def log(*args):
    """Write the arguments, one after the other and without a space between, where logging is on."""
    if _log["on"]:
        print(*args, sep="", file=getattr(sys, _log["stream"]))
