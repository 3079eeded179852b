"""torchvision.ops against the real one: suppression, overlaps, losses, pooling of regions, deformable convolution, blocks."""

import numpy
import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import ops

real_torch = pytest.importorskip("torch")
real = pytest.importorskip("torchvision").ops


def ours(t):
    return torch.from_numpy(t.detach().numpy().copy()) if isinstance(t, real_torch.Tensor) else t


def same(mine, theirs, tolerance=1e-5):
    assert mine.dtype.__repr__() == theirs.dtype.__repr__()
    numpy.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def some_boxes(n, dtype=real_torch.float32, most=50):
    boxes = real_torch.rand(n, 4, dtype=dtype) * most
    boxes[:, 2:] += boxes[:, :2]
    return boxes


def some_regions(k, images, dtype, most, reach):
    boxes = real_torch.rand(k, 4, dtype=dtype) * most - reach
    boxes[:, 2:] = boxes[:, :2] + real_torch.rand(k, 2, dtype=dtype) * most
    return real_torch.cat([real_torch.randint(0, images, (k, 1)).to(dtype), boxes], 1)


DTYPES = [real_torch.float32, real_torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 200])
def test_nms_keeps_the_same_boxes(n, dtype):
    real_torch.manual_seed(n)
    boxes, scores = some_boxes(n, dtype), (real_torch.rand(n, dtype=dtype) * 20).round()  # with ties
    for threshold in (0.0, 0.3, 0.9):
        kept = real.nms(boxes, scores, threshold)
        assert ops.nms(ours(boxes), ours(scores), threshold).tolist() == kept.tolist()


def test_nms_says_what_does_not_fit():
    boxes, scores = torch.rand(5, 4), torch.rand(5)
    for arguments, message in (((boxes[0], scores), "boxes should be a 2d tensor, got 1D"), ((boxes[:, :3], scores), "4 elements in dimension 1, got 3"),
                               ((boxes, scores[None]), "scores should be a 1d tensor, got 2D"), ((boxes, scores[:4]), "same number of elements in dimension 0, got 5 and 4"),
                               ((boxes.long(), scores.long()), "\"nms_kernel\" not implemented for 'Long'")):
        with pytest.raises(RuntimeError, match=message):
            ops.nms(*arguments, 0.5)


@pytest.mark.parametrize("n", [0, 40, 1200])
def test_batched_nms_keeps_categories_apart(n):
    real_torch.manual_seed(n)
    boxes, scores, categories = some_boxes(n), real_torch.rand(n), real_torch.randint(0, 5, (n,))
    kept = real.batched_nms(boxes, scores, categories, 0.4)
    assert ops.batched_nms(ours(boxes), ours(scores), ours(categories), 0.4).tolist() == kept.tolist()


def test_boxes_are_measured_and_changed_alike():
    real_torch.manual_seed(0)
    a, b = some_boxes(6, most=20), some_boxes(4, most=20)
    b[0] = a[0]
    for name in ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"):
        for x, y in ((a, b), (a.double(), b.double()), (a.long(), b.long())):
            if name == "complete_box_iou" and not x.is_floating_point():
                continue
            same(getattr(ops, name)(ours(x), ours(y)), getattr(real, name)(x, y))
    same(ops.box_area(ours(a.half())), real.box_area(a.half()))
    same(ops.clip_boxes_to_image(ours(a), (15, 25)), real.clip_boxes_to_image(a, (15, 25)))
    assert ops.remove_small_boxes(ours(a), 8).tolist() == real.remove_small_boxes(a, 8).tolist()
    for source in ("xyxy", "xywh", "cxcywh"):
        for target in ("xyxy", "xywh", "cxcywh"):
            same(ops.box_convert(ours(a), source, target), real.box_convert(a, source, target))
    with pytest.raises(ValueError, match="Unsupported Bounding Box Conversions"):
        ops.box_convert(ours(a), "xyxy", "yxyx")
    masks = real_torch.zeros(3, 9, 8, dtype=real_torch.bool)
    masks[0, 2:5, 3:7] = masks[1, 8, 0] = masks[2] = True
    same(ops.masks_to_boxes(ours(masks)), real.masks_to_boxes(masks))
    same(ops.masks_to_boxes(ours(masks[:0])), real.masks_to_boxes(masks[:0]))
    with pytest.raises(RuntimeError):
        ops.masks_to_boxes(torch.zeros(1, 3, 3))


@pytest.mark.parametrize("name", ["generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_box_losses_and_their_gradients(name, reduction):
    real_torch.manual_seed(1)
    a, b = some_boxes(8, most=20), some_boxes(8, most=20)
    mine_a, mine_b = ours(a).requires_grad_(), ours(b).requires_grad_()
    a.requires_grad_(), b.requires_grad_()
    mine, theirs = getattr(ops, name)(mine_a, mine_b, reduction), getattr(real, name)(a, b, reduction)
    same(mine, theirs)
    mine.sum().backward(), theirs.sum().backward()
    same(mine_a.grad, a.grad), same(mine_b.grad, b.grad)
    same(getattr(ops, name)(mine_a[:0], mine_b[:0], reduction), getattr(real, name)(a[:0], b[:0], reduction))
    same(getattr(ops, name)(mine_a[0], mine_b[0], eps=0.1), getattr(real, name)(a[0], b[0], eps=0.1))


@pytest.mark.parametrize("options", [{}, {"alpha": -1, "gamma": 1.5, "reduction": "mean"}, {"reduction": "sum"}])
def test_focal_loss(options):
    real_torch.manual_seed(2)
    logits, targets = real_torch.randn(5, 3), real_torch.randint(0, 2, (5, 3)).float()
    mine = ours(logits).requires_grad_()
    logits.requires_grad_()
    a, b = ops.sigmoid_focal_loss(mine, ours(targets), **options), real.sigmoid_focal_loss(logits, targets, **options)
    same(a, b)
    a.sum().backward(), b.sum().backward()
    same(mine.grad, logits.grad)


POOLS = [("roi_align", dict(output_size=3, spatial_scale=0.3)), ("roi_align", dict(output_size=(3, 4), spatial_scale=0.3, sampling_ratio=2, aligned=True)),
         ("roi_align", dict(output_size=2, aligned=True)), ("roi_pool", dict(output_size=(3, 2), spatial_scale=0.3)), ("roi_pool", dict(output_size=4)),
         ("ps_roi_align", dict(output_size=(2, 4), spatial_scale=0.3)), ("ps_roi_align", dict(output_size=4, spatial_scale=0.4, sampling_ratio=2)),
         ("ps_roi_pool", dict(output_size=(4, 2), spatial_scale=0.3)), ("ps_roi_pool", dict(output_size=2))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, options", POOLS)
@pytest.mark.parametrize("inside", [True, False])
def test_regions_are_pooled_alike(name, options, dtype, inside):
    real_torch.manual_seed(3)
    x = real_torch.randn(2, 32, 13, 11, dtype=dtype)
    regions = some_regions(9, 2, dtype, 5, 0) if inside else some_regions(9, 2, dtype, 30, 5)
    mine = ours(x).requires_grad_()
    x.requires_grad_()
    a, b = getattr(ops, name)(mine, ours(regions), **options), getattr(real, name)(x, regions, **options)
    tolerance = 1e-5 if dtype == real_torch.float32 else 1e-12
    same(a, b, tolerance)
    weights = real_torch.randn_like(b)
    a.backward(ours(weights)), b.backward(weights)
    if inside or name != "ps_roi_pool":  # at the border PyTorch's ps_roi_pool has a gradient that isn't its values'
        same(mine.grad, x.grad, tolerance)
    boxes = [regions[:3, 1:], regions[:0, 1:]]
    same(getattr(ops, name)(mine, [ours(b) for b in boxes], **options), getattr(real, name)(x, boxes, **options), tolerance)


@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"])
def test_gradients_of_pooled_regions_are_those_of_their_values(name):
    torch.manual_seed(0)
    x = torch.randn(2, 8, 6, 5, dtype=torch.float64, requires_grad=True)
    regions = torch.tensor([[0, 0.4, 1.3, 4.2, 5.1], [1, -2, -1, 3.3, 2.9], [1, 3, 2, 9, 9]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda t: getattr(ops, name)(t, regions, 2), (x,))
    assert torch.autograd.gradgradcheck(lambda t: getattr(ops, name)(t, regions, 2), (x,))


def test_regions_must_fit():
    x, regions = torch.rand(1, 4, 5, 5), torch.tensor([[0, 1.0, 1, 3, 3]])
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
        pool = getattr(ops, name)
        for wrong, error, message in (((x, regions[:, :4]), AssertionError, r"Tensor\[K, 5\]"), ((x, [regions]), AssertionError, r"List\[Tensor\[L, 4\]\]"),
                                      ((x, 3), AssertionError, "boxes is expected"), ((x.long(), regions.long()), RuntimeError, "not implemented for 'Long'"),
                                      ((x, regions.double()), RuntimeError, "torch.FloatTensor does not equal torch.DoubleTensor"),
                                      ((x[0], regions), IndexError, "4 dimensions"), ((x, regions + 1), IndexError, "there are 1 images")):
            with pytest.raises(error, match=message):
                pool(*wrong, 2)
        assert pool(x, regions[:0], 2).shape[0] == 0 and pool(x.half(), regions.half(), 2).dtype == torch.float16
    for name in ("ps_roi_align", "ps_roi_pool"):
        with pytest.raises(RuntimeError, match="input channels must be a multiple of pooling height"):
            getattr(ops, name)(x[:, :3], regions, 2)


def test_regions_of_channels_last_maps():
    torch.manual_seed(0)
    x = torch.nn.functional.conv2d(torch.randn(1, 3, 12, 12), torch.randn(33, 3, 3, 3))  # the engine's own layout
    regions = torch.tensor([[0, 1.0, 1, 6, 8]])
    for pool in (ops.roi_align, ops.roi_pool):
        expected = pool(torch.from_numpy(x.numpy().copy()), regions, 3)
        assert torch.equal(pool(x, regions, 3), expected)
        assert torch.equal(pool(x.to(memory_format=torch.channels_last), regions, 3), expected)


DEFORMATIONS = [(2, 4, 6, 1, 1, (3, 3), (1, 1), (0, 0), (1, 1), True), (2, 6, 4, 2, 3, (3, 2), (2, 2), (1, 1), (2, 2), True),
                (1, 12, 8, 4, 2, (3, 3), (1, 1), (1, 1), (1, 1), False), (3, 6, 6, 2, 1, (1, 1), (1, 1), (0, 0), (1, 1), True),
                (2, 8, 4, 1, 2, (3, 3), (1, 2), (2, 1), (1, 1), True)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("images, channels, out, groups, offset_groups, kernel, stride, padding, dilation, masked", DEFORMATIONS)
def test_deformable_convolution(images, channels, out, groups, offset_groups, kernel, stride, padding, dilation, masked, dtype):
    real_torch.manual_seed(4)
    high, wide = ((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, d, k, s in zip((9, 8), padding, dilation, kernel, stride))
    taps = kernel[0] * kernel[1]
    sizes = [(images, channels, 9, 8), (images, 2 * offset_groups * taps, high, wide), (out, channels // groups, *kernel), (out,),
             (images, offset_groups * taps, high, wide)]
    theirs = [real_torch.randn(size, dtype=dtype) for size in sizes]
    theirs[1][0] = theirs[1][0].round()  # whole offsets, on the border too
    theirs[1][-1] *= 4
    if not masked:
        theirs[4] = None
    mine = [t if t is None else ours(t).requires_grad_() for t in theirs]
    for t in theirs:
        if t is not None:
            t.requires_grad_()
    b = real.deform_conv2d(*theirs[:4], stride, padding, dilation, theirs[4])
    a = ops.deform_conv2d(*mine[:4], stride, padding, dilation, mine[4])
    tolerance = 2e-5 if dtype == real_torch.float32 else 1e-12
    same(a, b, tolerance)
    weights = real_torch.randn_like(b)
    a.backward(ours(weights)), b.backward(weights)
    for x, y in zip(mine, theirs):
        if x is not None:
            same(x.grad, y.grad, tolerance)


def test_gradients_of_deformable_convolution():
    torch.manual_seed(1)
    x, weight = (torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in ((1, 4, 5, 4), (2, 2, 3, 2)))
    offset, mask = torch.randn(1, 24, 3, 3, dtype=torch.float64, requires_grad=True), torch.rand(1, 12, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *t: ops.deform_conv2d(t[0], t[1], t[2], mask=t[3]), (x, offset, weight, mask))


def test_deformable_convolution_says_what_does_not_fit():
    x, offset, weight, mask = torch.rand(2, 4, 5, 5), torch.rand(2, 18, 3, 3), torch.rand(6, 4, 3, 3), torch.rand(2, 9, 3, 3)
    for wrong, message in ((dict(offset=offset[:, :17]), "offset tensor at dimension 1 is not valid"), (dict(offset=torch.rand(2, 20, 3, 3)), "got: 20 expected: 18"),
                           (dict(offset=offset[:, :, :2]), r"offset output dims: \(2, 3\) - computed output dims: \(3, 3\)"), (dict(offset=offset[:1]), "invalid batch size of offset"),
                           (dict(mask=mask[:1]), "invalid batch size of mask"), (dict(mask=mask[:, :8]), "mask.shape"), (dict(weight=weight[:, :3]), "does not fit 4 channels"),
                           (dict(offset=offset.double()), "expected scalar type Float but found Double"), (dict(stride=0), "stride_h: 0 stride_w: 0"),
                           (dict(padding=-1), "pad_h: -1"), (dict(dilation=0), "dil_h: 0")):
        with pytest.raises(RuntimeError, match=message):
            ops.deform_conv2d(**{"input": x, "offset": offset, "weight": weight, "mask": mask, **wrong})


def test_modules_print_and_compute_as_theirs():
    for name, arguments in (("RoIAlign", (3, 0.5, 2)), ("RoIPool", ((2, 3), 0.5)), ("PSRoIAlign", (2, 1.0, 0)), ("PSRoIPool", (2, 1.0)), ("DropBlock2d", (0.1, 3)),
                            ("DropBlock3d", (0.1, 3, True)), ("DeformConv2d", (4, 6, 3, 2, 1, 2, 2, False)), ("DeformConv2d", (4, 6, (3, 1))),
                            ("FrozenBatchNorm2d", (5,)), ("MultiScaleRoIAlign", (["a", "b"], 3, 2))):
        assert repr(getattr(ops, name)(*arguments)) == repr(getattr(real, name)(*arguments))
    torch.manual_seed(0), real_torch.manual_seed(0)
    mine, theirs = ops.DeformConv2d(4, 6, 3), real.DeformConv2d(4, 6, 3)
    for (name, a), (other, b) in zip(mine.named_parameters(), theirs.named_parameters()):
        assert name == other
        same(a, b)
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        ops.DeformConv2d(4, 6, 3, groups=3)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("name, shape", [("drop_block2d", (2, 3, 7, 8)), ("drop_block3d", (2, 3, 5, 6, 7))])
def test_blocks_are_dropped_at_the_same_places(name, shape, inplace):
    x = real_torch.randn(shape)
    torch.manual_seed(5), real_torch.manual_seed(5)
    same(getattr(ops, name)(ours(x), 0.2, 3, inplace), getattr(real, name)(x.clone(), 0.2, 3, inplace))
    assert getattr(ops, name)(y := ours(x), 0.2, 3, training=False) is y
    for wrong in ((ours(x), 1.5, 3), (ours(x)[0], 0.5, 3)):
        with pytest.raises(ValueError):
            getattr(ops, name)(*wrong)


def test_feature_pyramid():
    from msadapter.torchvision.ops import feature_pyramid_network as mine
    from torchvision.ops import feature_pyramid_network as theirs

    real_torch.manual_seed(6)
    maps = {name: real_torch.randn(1, c, s, s) for name, c, s in (("a", 4, 16), ("b", 6, 8), ("c", 8, 4))}
    for extra in (lambda m: None, lambda m: m.LastLevelMaxPool(), lambda m: m.LastLevelP6P7(5, 5), lambda m: m.LastLevelP6P7(8, 5)):
        torch.manual_seed(7), real_torch.manual_seed(7)
        a, b = (m.FeaturePyramidNetwork([4, 6, 8], 5, extra(m)) for m in (mine, theirs))
        assert list(a.state_dict()) == list(b.state_dict())
        x, y = a({name: ours(value) for name, value in maps.items()}), b(maps)
        assert list(x) == list(y)
        for name in x:
            same(x[name], y[name])
    old = {name.replace(".0.", ".", 1) if name.count(".") == 3 else name: value for name, value in b.state_dict().items()}
    old = {name.replace("_blocks.0.0.", "_blocks.0."): ours(value) for name, value in old.items()}
    a.load_state_dict(old)
    with pytest.raises(TypeError, match="extra_blocks should be of type ExtraFPNBlock"):
        mine.FeaturePyramidNetwork([4], 5, torch.nn.ReLU())
    with pytest.raises(ValueError, match="in_channels=0"):
        mine.FeaturePyramidNetwork([0], 5)


@pytest.mark.parametrize("names", [["a", "b", "c"], ["b"]])
def test_regions_out_of_a_pyramid(names):
    real_torch.manual_seed(8)
    maps = {name: real_torch.randn(2, 5, s, s) for name, s in (("a", 64), ("b", 32), ("c", 16))}
    boxes = [some_boxes(6, most=120), some_boxes(3, most=40)]
    mine, theirs = ops.MultiScaleRoIAlign(names, (3, 2), 2, canonical_scale=100), real.MultiScaleRoIAlign(names, (3, 2), 2, canonical_scale=100)
    x = {name: ours(value).requires_grad_() for name, value in maps.items()}
    for value in maps.values():
        value.requires_grad_()
    a, b = mine(x, [ours(t) for t in boxes], [(256, 200), (240, 256)]), theirs(maps, boxes, [(256, 200), (240, 256)])
    same(a, b)
    assert mine.scales == theirs.scales
    a.pow(2).sum().backward(), b.pow(2).sum().backward()
    for name in names:
        same(x[name].grad, maps[name].grad, 1e-4)
    with pytest.raises(ValueError, match="images list should not be empty"):
        ops.MultiScaleRoIAlign(names, 3, 2)(x, [ours(t) for t in boxes], [])


def test_modules_are_found_under_their_names():
    import importlib

    for name, member in (("roi_align", "RoIAlign"), ("ps_roi_pool", "PSRoIPool"), ("focal_loss", "sigmoid_focal_loss"), ("ciou_loss", "complete_box_iou_loss"),
                         ("boxes", "nms"), ("poolers", "LevelMapper"), ("misc", "FrozenBatchNorm2d")):
        assert hasattr(importlib.import_module(f"msadapter.torchvision.ops.{name}"), member)
    assert callable(ops.roi_align) and set(real.__all__) <= set(ops.__all__)
