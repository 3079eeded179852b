"""torchvision.utils against the real one: grids, saved files, boxes, masks, keypoints, flow; the choice of backends."""

import io

import numpy
import pytest

import msadapter.pytorch as torch
from msadapter import torchvision
from msadapter.torchvision import utils

real_torch = pytest.importorskip("torch")
real_vision = pytest.importorskip("torchvision")
real = real_vision.utils


def ours(value):
    if isinstance(value, real_torch.Tensor):
        return torch.from_numpy(value.numpy().copy())
    return [ours(item) for item in value] if isinstance(value, list) else value


def same(name, *args, **options):
    """Both sides' results are equal, or both raise the same kind of error."""
    try:
        expected = getattr(real, name)(*args, **options)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            getattr(utils, name)(*map(ours, args), **options)
        assert str(caught.value).replace("msadapter.pytorch", "torch") == str(error)
        return None
    mine = getattr(utils, name)(*map(ours, args), **options)
    assert repr(mine.dtype) == repr(expected.dtype) and tuple(mine.shape) == tuple(expected.shape)
    numpy.testing.assert_array_equal(mine.numpy(), expected.numpy())
    return mine


@pytest.mark.parametrize("shape", [(5, 3, 4, 6), (5, 1, 4, 6), (1, 3, 4, 6), (3, 4, 6), (1, 4, 6), (4, 6), (9, 2, 3, 3)])
@pytest.mark.parametrize("options", [{}, {"nrow": 3, "padding": 0}, {"normalize": True}, {"normalize": True, "scale_each": True, "pad_value": 0.5},
                                     {"normalize": True, "value_range": (-1, 1)}])
def test_grids(shape, options):
    real_torch.manual_seed(0)
    same("make_grid", real_torch.randn(shape), **options)


def test_grids_of_lists_and_bytes():
    pictures = [real_torch.randint(0, 256, (3, 4, 5), dtype=real_torch.uint8) for _ in range(4)]
    same("make_grid", pictures, pad_value=7)
    same("make_grid", [pictures[0][0], pictures[1][0]])
    for wrong in (3, [1, 2], "text"):
        same("make_grid", wrong)
    same("make_grid", pictures[0].float(), normalize=True, value_range=[0, 1])


def test_arguments_without_effect_are_told():
    pictures = torch.rand(2, 3, 4, 4)
    with pytest.warns(UserWarning, match="does nothing with colour"):
        utils.make_grid(pictures, colour=1)
    with pytest.warns(UserWarning, match="value_range"):
        assert torch.equal(utils.make_grid(pictures, normalize=True, range=(0, 2)), utils.make_grid(pictures, normalize=True, value_range=(0, 2)))


def test_saved_files_are_the_same(tmp_path):
    real_torch.manual_seed(1)
    pictures = real_torch.randn(3, 3, 8, 9)
    for name, options in (("a.png", {}), ("a.jpg", {"nrow": 2}), ("a.bmp", {"normalize": True})):
        utils.save_image(ours(pictures), str(tmp_path / name), **options)
        real.save_image(pictures, str(tmp_path / ("real" + name)), **options)
        assert (tmp_path / name).read_bytes() == (tmp_path / ("real" + name)).read_bytes()
    file = io.BytesIO()
    utils.save_image(ours(pictures), file, format="PNG")
    assert file.getvalue()[:4] == b"\x89PNG"


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("options", [{}, {"labels": ["cat", "dog", None]}, {"colors": "red", "width": 3},
                                     {"colors": ["#00ff00", (1, 2, 3), "blue"], "fill": True},
                                     {"colors": ["red"]}, {"labels": ["cat"]}])
def test_boxes(channels, options):
    real_torch.manual_seed(2)
    image = real_torch.randint(0, 256, (channels, 60, 50), dtype=real_torch.uint8)
    boxes = real_torch.tensor([[1, 2, 30, 40], [10.5, 5, 49, 59], [0, 0, 5, 5]])
    same("draw_bounding_boxes", image, boxes, **options)


def test_boxes_that_cannot_be_drawn():
    image = real_torch.zeros(3, 20, 20, dtype=real_torch.uint8)
    box = real_torch.tensor([[1, 1, 5, 5]])
    for args in ((3, box), (image.float(), box), (image[None], box), (image[:2], box), (image, box.flip(1))):
        same("draw_bounding_boxes", *args)
    with pytest.warns(UserWarning, match="any box"):
        same("draw_bounding_boxes", image, box[:0])
    with pytest.warns(UserWarning, match="font_size"):
        same("draw_bounding_boxes", image, box, font_size=12)
    with pytest.raises(OSError):
        utils.draw_bounding_boxes(ours(image), ours(box), font="no such font", font_size=12)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.3}, {"colors": ["red", "#00ff00"]}, {"colors": [(1, 2, 3), (4, 5, 6)]}, {"colors": ["red"]},
                                     {"colors": [1, 2]}, {"colors": ((1, 2), (3, 4))}])
def test_masks(options):
    real_torch.manual_seed(3)
    image = real_torch.randint(0, 256, (3, 12, 13), dtype=real_torch.uint8)
    same("draw_segmentation_masks", image, real_torch.rand(2, 12, 13) > 0.5, **options)


def test_masks_that_cannot_be_drawn():
    image, mask = real_torch.zeros(3, 6, 5, dtype=real_torch.uint8), real_torch.ones(6, 5, dtype=real_torch.bool)
    same("draw_segmentation_masks", image, mask, colors="blue")
    for args in ((1, mask), (image.float(), mask), (image[None], mask), (image[:1], mask), (image, mask[0]), (image, mask.float()), (image, mask.T)):
        same("draw_segmentation_masks", *args)
    with pytest.warns(UserWarning, match="any mask"):
        same("draw_segmentation_masks", image, mask[None][:0])


def test_one_colour_serves_all_masks():
    image, masks = torch.zeros(3, 2, 4, dtype=torch.uint8), torch.eye(4, dtype=torch.bool)[:, None].repeat(1, 2, 1)
    assert torch.equal(utils.draw_segmentation_masks(image, masks, 1.0, "red")[0], torch.full((2, 4), 255, dtype=torch.uint8))


@pytest.mark.parametrize("options", [{}, {"colors": "red"}, {"colors": (1, 2, 3), "connectivity": [(0, 1), (1, 2)], "radius": 4, "width": 1}])
def test_keypoints(options):
    real_torch.manual_seed(4)
    image = real_torch.randint(0, 256, (3, 40, 50), dtype=real_torch.uint8)
    points = real_torch.rand(2, 3, 2) * 40
    same("draw_keypoints", image, points, **options)
    for args in ((1, points), (image.float(), points), (image[None], points), (image[:1], points), (image, points[0])):
        same("draw_keypoints", *args, **options)


@pytest.mark.parametrize("shape", [(2, 9, 11), (3, 2, 9, 11)])
def test_flow(shape):
    real_torch.manual_seed(5)
    flow = real_torch.randn(shape) * 5
    mine, expected = utils.flow_to_image(ours(flow)), real.flow_to_image(flow)
    assert repr(mine.dtype) == repr(expected.dtype) and tuple(mine.shape) == tuple(expected.shape)
    assert (mine.numpy().astype(int) - expected.numpy().astype(int)).__abs__().max() <= 1
    assert (utils._colour_wheel().numpy() == real._make_colorwheel().numpy()).all()
    for wrong in (flow.double(), flow[..., 0], flow[..., :1, :, :]):
        same("flow_to_image", wrong)


def test_backends():
    assert torchvision.get_image_backend() == "PIL" and torchvision.get_video_backend() == "pyav"
    torchvision.set_image_backend("accimage")
    assert torchvision.get_image_backend() == "accimage"
    torchvision.set_image_backend("PIL")
    torchvision.set_video_backend("pyav")
    with pytest.warns(UserWarning, match="not available"):
        torchvision.set_video_backend("video_reader")
    assert torchvision.get_video_backend() == "pyav"
    for set_backend, name in ((torchvision.set_image_backend, "set_image_backend"), (torchvision.set_video_backend, "set_video_backend")):
        with pytest.raises(ValueError) as mine:
            set_backend("other")
        with pytest.raises(ValueError) as expected:
            getattr(real_vision, name)("other")
        assert str(mine.value) == str(expected.value)
