"""Linear maps and convolutions: operators of the extension as they are."""

from msadapter.pytorch.nn._functional.operators import find

linear, bilinear, conv_tbc = find("linear"), find("bilinear"), find("conv_tbc")
conv1d, conv2d, conv3d = find("conv1d"), find("conv2d"), find("conv3d")
conv_transpose1d, conv_transpose2d, conv_transpose3d = find("conv_transpose1d"), find("conv_transpose2d"), find("conv_transpose3d")
