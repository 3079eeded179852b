"""torchvision.io: pictures through Pillow, films through PyAV where it is installed."""

from msadapter.torchvision.io.image import (ImageReadMode, decode_image, decode_jpeg, decode_png, encode_jpeg, encode_png, read_file, read_image, write_file,
                                            write_jpeg, write_png)
from msadapter.torchvision.io.video import Timebase, VideoMetaData, VideoReader, read_video, read_video_timestamps, write_video

__all__ = ["ImageReadMode", "Timebase", "VideoMetaData", "VideoReader", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "read_file",
           "read_image", "read_video", "read_video_timestamps", "write_file", "write_jpeg", "write_png", "write_video"]
