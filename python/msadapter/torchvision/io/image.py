"""Pictures as tensors (C, H, W) of bytes: JPEG and PNG, read and written by Pillow over the same libraries that torchvision uses."""

import enum
import io

from msadapter import pytorch as torch


_DAMAGED = {"JPEG": "Image is incomplete or truncated", "PNG": "Out of bound read in decode_png. Probably, the input image is corrupted"}


class ImageReadMode(enum.Enum):
    """What channels a picture is read with; UNCHANGED leaves it as it is."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


def read_file(path):
    """A file's bytes, uint8 (N,). Raises RuntimeError when it can't be read or is empty."""
    if not isinstance(path, str):
        raise RuntimeError(f"read_file() expects a path of type 'str', not '{type(path).__name__}'")
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{path}'") from None
    if not data:
        raise RuntimeError("Expected a non empty file")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def write_file(filename, data):
    """Write uint8 (N,) to a file. Raises RuntimeError for other tensors and when it can't be written."""
    if data.dtype != torch.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 1:
        raise RuntimeError("Input data should be a 1-dimensional tensor")
    try:
        with open(filename, "wb") as file:
            file.write(data.contiguous().numpy().tobytes())
    except OSError:
        raise RuntimeError("Error opening output file") from None


def _encoded(input):
    """The bytes in a tensor. Raises RuntimeError for tensors that hold no file."""
    if not isinstance(input, torch.Tensor):
        raise RuntimeError(f"expected a value of type 'Tensor' but found type '{type(input).__name__}'")
    if input.dtype != torch.uint8:
        raise RuntimeError("Expected a torch.uint8 tensor")
    if input.dim() != 1 or input.numel() == 0:
        raise RuntimeError("Expected a non empty 1-dimensional tensor")
    return input.contiguous().numpy().tobytes()


def _values(picture):
    import numpy

    array = numpy.asarray(picture)
    if array.dtype == bool:
        array = array * numpy.uint8(255)
    return torch.from_numpy(numpy.array(array if array.ndim == 3 else array[:, :, None])).permute(2, 0, 1)


def _open(data, kind):
    """The picture in `data`, not yet decoded. Raises RuntimeError when the header is damaged."""
    from PIL import Image

    try:
        return Image.open(io.BytesIO(data), formats=(kind,))
    except Exception as error:
        if "runcated" in str(error):
            raise RuntimeError(_DAMAGED[kind]) from None
        raise RuntimeError(f"the {kind} picture's header is damaged: {error}") from None


def _load(picture):
    # Pillow answers damaged data with many kinds of errors, struct.error and zlib.error among them.
    try:
        picture.load()
    except Exception:
        raise RuntimeError(_DAMAGED[picture.format]) from None
    return picture


def decode_jpeg(input, mode=ImageReadMode.UNCHANGED, device="cpu"):
    """A JPEG file's bytes, uint8 (N,), as uint8 (C, H, W); C is 1, 3 or, for CMYK, 4. Raises RuntimeError for damaged files and modes with alpha."""
    wanted = mode.value
    if torch.device(device).type == "cuda":
        raise RuntimeError("decode_jpeg_cuda: torchvision not compiled with nvJPEG support")
    data = _encoded(input)
    if data[:2] != b"\xff\xd8":
        raise RuntimeError(f"Not a JPEG file: starts with 0x{data[0]:02x} 0x{data[1] if len(data) > 1 else 0:02x}")
    if wanted not in (0, 1, 3):
        raise RuntimeError("The provided mode is not supported for JPEG files")
    picture = _open(data, "JPEG")
    if wanted and picture.mode == "CMYK":
        raise RuntimeError("Unsupported color conversion request")
    if wanted == 1:
        picture.draft("L", picture.size)  # the decoder's own luminance, without a way through RGB
    picture = _load(picture)
    values = _values(picture.convert("RGB") if wanted == 3 else picture)
    return 255 - values if picture.mode == "CMYK" else values  # Pillow turns them round, as Adobe means them


def _gray(values):
    """RGB bytes (3, H, W) as grey (1, H, W) in libpng's arithmetic: weights of 0.2989 and 0.587 in 15 bits, rounded down."""
    red, green, blue = values.to(torch.int32)
    return ((9794 * red + 19234 * green + 3740 * blue) // 32768).to(torch.uint8).unsqueeze(0)


def decode_png(input, mode=ImageReadMode.UNCHANGED):
    """A PNG file's bytes, uint8 (N,), as uint8 (C, H, W). Unchanged, a picture with a palette gives the indices.

    Raises RuntimeError for damaged files and for more than 8 bits a channel.
    """
    wanted, picture = mode.value, _open_png(input)
    if _png_depth(input) > 8:
        raise RuntimeError("At most 8-bit PNG images are supported currently.")
    if picture.mode != "P":
        picture.info.pop("transparency", None)  # as torchvision, which takes alpha from channels and palettes only
    values = _values(_load(picture))
    if wanted == 0:
        return values
    if picture.mode == "P":
        values = _values(picture.convert("RGBA"))
    alpha = values[-1:] if len(values) in (2, 4) else torch.full_like(values[:1], 255)
    colours = values[:-1] if len(values) in (2, 4) else values
    if wanted in (1, 2) and len(colours) == 3:
        colours = _gray(colours)
    elif wanted in (3, 4) and len(colours) == 1:
        colours = colours.repeat(3, 1, 1)
    return torch.cat((colours, alpha)) if wanted in (2, 4) else colours


def _open_png(input):
    data = _encoded(input)
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise RuntimeError("Content is not png!")
    return _open(data, "PNG")


def _png_depth(input):
    """Bits a channel, from the first chunk, whose place is fixed."""
    return int(input[24])


def _read_png_16(path, mode=ImageReadMode.UNCHANGED):
    """A PNG file of 16 bits a channel as int32 (C, H, W). Raises RuntimeError for other depths and kinds, and modes that aren't the file's own."""
    input = read_file(path)
    high, low = _open_png(input), _open_png(input)
    channels = {"RGB": 3, "I": 1, "I;16": 1, "I;16B": 1}.get(high.mode, 0)
    if _png_depth(input) != 16 or mode.value not in (0, channels) or not channels:
        raise RuntimeError(f"{path}: expected grey or RGB of 16 bits, in its own mode, found {high.mode} of {_png_depth(input)} bits and {mode}")
    if channels == 1:
        return _values(_load(high)).to(torch.int32)
    # Pillow keeps one byte of each channel: the first of RGB;16B, and as RGB;16L, of the other order, the second.
    low.tile = [(codec, extents, offset, "RGB;16L") for codec, extents, offset, _ in low.tile]
    high, low = (_values(_load(picture)).to(torch.int32) for picture in (high, low))
    return high * 256 + low


def decode_image(input, mode=ImageReadMode.UNCHANGED):
    """A JPEG or PNG file's bytes, uint8 (N,), as uint8 (C, H, W). Raises RuntimeError for other files."""
    mode.value  # noqa: B018  (an AttributeError for anything but a mode comes first)
    data = _encoded(input)
    if data[:3] == b"\xff\xd8\xff":
        return decode_jpeg(input, mode)
    if data[:4] == b"\x89PNG":
        return decode_png(input, mode)
    raise RuntimeError("Unsupported image file. Only jpeg and png are currently supported.")


def read_image(path, mode=ImageReadMode.UNCHANGED):
    """A JPEG or PNG file as uint8 (C, H, W). Raises RuntimeError when it can't be read."""
    return decode_image(read_file(path), mode)


def _encode(input, kind, **options):
    from PIL import Image

    if input.dtype != torch.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if input.dim() != 3:
        raise RuntimeError("Input data should be a 3-dimensional tensor")
    if input.size(0) not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {input.size(0)}")
    if input.numel() == 0:
        raise RuntimeError("Empty JPEG image (DNL not supported)" if kind == "JPEG" else "Invalid IHDR data")
    values = input.permute(1, 2, 0).contiguous().numpy()
    file = io.BytesIO()
    try:
        Image.fromarray(values if values.shape[2] == 3 else values[:, :, 0]).save(file, kind, **options)
    except (OSError, ValueError) as error:  # sides beyond what the format knows
        raise RuntimeError(f"cannot write a picture of {tuple(input.shape)} as {kind}: {error}") from None
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def encode_jpeg(input, quality=75):
    """uint8 (1 or 3, H, W) as a JPEG file's bytes, uint8 (N,). Raises ValueError for a quality outside 1 to 100, RuntimeError for other tensors."""
    if quality < 1 or quality > 100:
        raise ValueError("Image quality should be a positive number between 1 and 100")
    if not isinstance(quality, int):
        raise RuntimeError(f"encode_jpeg() expects a quality of type 'int', not '{type(quality).__name__}'")
    return _encode(input, "JPEG", quality=quality)


def write_jpeg(input, filename, quality=75):
    """Write uint8 (1 or 3, H, W) as a JPEG file."""
    write_file(filename, encode_jpeg(input, quality))


def encode_png(input, compression_level=6):
    """uint8 (1 or 3, H, W) as a PNG file's bytes, uint8 (N,). Raises RuntimeError for a level outside 0 to 9 and for other tensors."""
    if not isinstance(compression_level, int) or not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    return _encode(input, "PNG", compress_level=compression_level)


def write_png(input, filename, compression_level=6):
    """Write uint8 (1 or 3, H, W) as a PNG file."""
    write_file(filename, encode_png(input, compression_level))
