"""torchvision.models.detection against the real torchvision: parameters, losses, gradients, detections and the parts."""

import os
import warnings

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision import models, ops
from msadapter.torchvision.models import detection

reference = pytest.importorskip("torch")
their_vision = pytest.importorskip("torchvision")
theirs = pytest.importorskip("torchvision.models.detection")

MODELS = ("fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn", "fasterrcnn_mobilenet_v3_large_320_fpn",
          "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2", "keypointrcnn_resnet50_fpn", "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2",
          "fcos_resnet50_fpn", "ssd300_vgg16", "ssdlite320_mobilenet_v3_large")
OURS = (torch, nn, detection, ops)
THEIRS = (reference, reference.nn, theirs, their_vision.ops)
SIZES = ((64, 80), (72, 64))


def same(ours, wanted, atol=1e-5, rtol=1e-5):
    """Whether both are alike: tensors, numbers, and lists and dictionaries of them."""
    if isinstance(wanted, dict):
        assert list(ours) == list(wanted)
        for name in wanted:
            same(ours[name], wanted[name], atol, rtol)
    elif isinstance(wanted, (list, tuple)):
        assert len(ours) == len(wanted)
        for pair in zip(ours, wanted):
            same(*pair, atol, rtol)
    elif isinstance(wanted, reference.Tensor):
        assert tuple(ours.shape) == tuple(wanted.shape) and str(ours.dtype) == str(wanted.dtype)
        assert reference.allclose(reference.from_numpy(ours.detach().numpy()), wanted.detach(), atol=atol, rtol=rtol, equal_nan=True)
    else:
        assert ours == wanted


def both(value):
    """A structure of the reference's tensors for each library."""
    def ours(each):
        if isinstance(each, dict):
            return {name: ours(part) for name, part in each.items()}
        if isinstance(each, (list, tuple)):
            return type(each)(ours(part) for part in each)
        return torch.from_numpy(each.numpy().copy()) if isinstance(each, reference.Tensor) else each

    return ours(value), value


def seed(number):
    torch.manual_seed(number), reference.manual_seed(number)


def boxes_in(height, width, count):
    corner = reference.rand(count, 2) * reference.tensor([width * 0.5, height * 0.5])
    return reference.cat((corner, corner + 8 + reference.rand(count, 2) * reference.tensor([width * 0.5 - 8, height * 0.5 - 8])), dim=1)


def pictures(counts=(3, 2), classes=4, sizes=SIZES):
    """Pictures and targets for all detectors."""
    reference.manual_seed(11)
    images, targets = [], []
    for (height, width), count in zip(sizes, counts):
        boxes = boxes_in(height, width, count) if count else reference.zeros(0, 4)
        points = boxes[:, None, :2] + reference.rand(count, 5, 2) * (boxes[:, None, 2:] - boxes[:, None, :2]) * 1.1
        targets.append({"boxes": boxes, "labels": reference.randint(1, classes, (count,)), "masks": (reference.rand(count, height, width) > 0.5).byte(),
                        "keypoints": reference.cat((points, (reference.rand(count, 5, 1) > 0.3).float()), dim=2)})
        images.append(reference.rand(3, height, width))
    return images, targets


def small_backbone(library):
    """A pyramid of three maps of 32 channels."""
    _, nn_, det, ops_ = library
    body = nn_.Sequential(nn_.Sequential(nn_.Conv2d(3, 8, 3, 4, 1), nn_.ReLU()), nn_.Sequential(nn_.Conv2d(8, 16, 3, 2, 1), nn_.ReLU()),
                          nn_.Sequential(nn_.Conv2d(16, 32, 3, 2, 1), nn_.ReLU()))
    return det.backbone_utils.BackboneWithFPN(body, {"0": "0", "1": "1", "2": "2"}, [8, 16, 32], 32)


def anchors(det, *sizes):
    return det.anchor_utils.AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


FOUR = ((8,), (16,), (32,), (48,))
SETTINGS = {"min_size": 64, "max_size": 96}


def faster(library, **more):
    det = library[2]
    return det.FasterRCNN(small_backbone(library), 4, rpn_anchor_generator=anchors(det, *FOUR), rpn_pre_nms_top_n_test=60, box_score_thresh=0.02,
                          box_batch_size_per_image=16, rpn_batch_size_per_image=32, **SETTINGS, **more)


def mask(library):
    det, heads = library[2], library[2].mask_rcnn
    predictor = det.faster_rcnn.FastRCNNPredictor(64, 4)
    return det.MaskRCNN(small_backbone(library), rpn_anchor_generator=anchors(det, *FOUR), box_head=det.faster_rcnn.TwoMLPHead(32 * 49, 64),
                        box_predictor=predictor, mask_head=heads.MaskRCNNHeads(32, (16, 16), 1), mask_predictor=heads.MaskRCNNPredictor(16, 8, 4),
                        box_score_thresh=0.2, box_detections_per_img=6, **SETTINGS)


def keypoint(library):
    det, heads = library[2], library[2].keypoint_rcnn
    return det.KeypointRCNN(small_backbone(library), 4, rpn_anchor_generator=anchors(det, *FOUR), keypoint_head=heads.KeypointRCNNHeads(32, (16,)),
                            keypoint_predictor=heads.KeypointRCNNPredictor(16, 5), box_score_thresh=0.2, box_detections_per_img=6, min_size=(48, 64),
                            max_size=96)


def retina(library):
    det = library[2]
    model = det.RetinaNet(small_backbone(library), 4, anchor_generator=anchors(det, *FOUR), score_thresh=0.02, topk_candidates=40, **SETTINGS)
    return spread(model, library)


def retina_of_boxes(library):
    model = retina(library)
    model.head.regression_head._loss_type = "giou"
    return model


def fcos(library):
    det = library[2]
    own = det.anchor_utils.AnchorGenerator(FOUR, ((1.0,),) * 4)
    return spread(det.FCOS(small_backbone(library), 4, anchor_generator=own, score_thresh=0.05, topk_candidates=40, **SETTINGS), library)


class Maps:
    """A backbone of three maps for SSD, in either library."""

    @staticmethod
    def of(library):
        base = library[1].Module

        class Backbone(base):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = (library[1].Conv2d(*shape, 3, 2, 1) for shape in ((3, 8), (8, 12), (12, 16)))

            def forward(self, x):
                a = self.a(x)
                b = self.b(library[0].relu(a))
                return {"0": a, "1": b, "2": self.c(library[0].relu(b))}

        return Backbone()


def ssd(library):
    det = library[2]
    return det.ssd.SSD(Maps.of(library), det.anchor_utils.DefaultBoxGenerator([[2], [2, 3], [2]], 0.2, 0.9), (48, 40), 4, score_thresh=0.05,
                       topk_candidates=50)


SMALL = (faster, mask, keypoint, retina, retina_of_boxes, fcos, ssd)


def spread(model, library):
    """Makes scores and offsets of a model unlike each other: those of nearly equal ones come in any order."""
    with library[0].no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith("head.") and parameter.dim() == 4:
                parameter.mul_(8)
    return model


def pair(make):
    """A model of each library, from the same seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed(3)
        ours = make(OURS)
        reference.manual_seed(3)
        return ours, make(THEIRS)


@pytest.fixture(autouse=True)
def the_same_numbers_each_time():
    seed(7)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_initial_values(name):
    ours, other = pair(lambda library: getattr(library[2], name)(weights=None, weights_backbone=None))
    state, wanted = ours.state_dict(), other.state_dict()
    assert list(state) == list(wanted)
    for key, value in wanted.items():
        assert tuple(state[key].shape) == tuple(value.shape) and (state[key].numpy() == value.numpy()).all(), key
    assert [n for n, p in ours.named_parameters() if p.requires_grad] == [n for n, p in other.named_parameters() if p.requires_grad]


@pytest.mark.parametrize("counts", [(3, 2), (0, 2)])
@pytest.mark.parametrize("make", SMALL)
def test_losses(make, counts):
    ours, other = pair(make)
    (images, targets), (their_images, their_targets) = both(pictures(counts))
    seed(5)
    same(ours(images, targets), other(their_images, their_targets), 1e-5, 1e-4)


@pytest.mark.parametrize("make", SMALL)
def test_gradients(make):
    """In float64: rounding in float32 turns activations on and off, by which PyTorch's own gradients are 1 % from those in float64."""
    ours, other = pair(make)
    ours.double(), other.double()
    images, targets = pictures()
    images = [image.double() for image in images]
    for target in targets:
        target["boxes"] = target["boxes"].double()
    (images, targets), (their_images, their_targets) = both((images, targets))
    seed(5)
    losses, wanted = ours(images, targets), other(their_images, their_targets)
    for name in wanted:
        assert losses[name].item() == pytest.approx(wanted[name].item(), rel=1e-6)
    sum(losses.values()).backward()
    sum(wanted.values()).backward()
    for (name, parameter), theirs_ in zip(ours.named_parameters(), other.parameters()):
        assert (parameter.grad is None) == (theirs_.grad is None), name
        if theirs_.grad is not None:
            scale = max(float(theirs_.grad.abs().max()), 1e-6)
            assert abs(parameter.grad.numpy() - theirs_.grad.numpy()).max() < 1e-6 * scale, name


@pytest.mark.parametrize("make", SMALL)
def test_detections(make):
    ours, other = pair(make)
    ours.eval(), other.eval()
    (images, targets), (their_images, their_targets) = both(pictures())
    with torch.no_grad(), reference.no_grad():
        found, wanted = ours(images), other(their_images)
        assert sum(len(each["boxes"]) for each in wanted) > 0
        same(found, wanted, 1e-4, 1e-4)
        same(ours(images, targets), other(their_images, their_targets), 1e-4, 1e-4)


@pytest.mark.parametrize("make", SMALL)
def test_nothing_found(make):
    ours, other = pair(make)
    for model in (ours, other):
        model.eval()
        (model.roi_heads if hasattr(model, "roi_heads") else model).score_thresh = 2.0
    images, their_images = both(pictures()[0])
    with torch.no_grad(), reference.no_grad():
        same(ours(images), other(their_images))


@pytest.mark.parametrize("name,size", [("fasterrcnn_mobilenet_v3_large_320_fpn", 64), ("retinanet_resnet50_fpn_v2", 64), ("fcos_resnet50_fpn", 64),
                                       ("ssdlite320_mobilenet_v3_large", None), ("ssd300_vgg16", None)])
def test_whole_models(name, size):
    options = {"num_classes": 4, "weights_backbone": None, "weights": None}
    if size is not None:
        options.update(min_size=size, max_size=size * 2)
    ours, other = pair(lambda library: getattr(library[2], name)(**options))
    (images, targets), (their_images, their_targets) = both(pictures())
    ours.load_state_dict({key: torch.from_numpy(value.numpy()) for key, value in other.state_dict().items()})
    ours.eval(), other.eval()
    with torch.no_grad(), reference.no_grad():
        scale = [reference.rand(3, *SIZES[0])]
        ours_found, wanted = ours(both(scale)[0]), other(scale)
    assert len(ours_found[0]["boxes"]) == len(wanted[0]["boxes"])
    same(ours_found[0]["scores"], wanted[0]["scores"], 1e-3, 1e-3)
    ours.train(), other.train()
    seed(5)
    with reference.no_grad():
        wanted = other(their_images, their_targets)
    losses = ours(images, targets)
    same(losses, wanted, 1e-3, 2e-3)
    sum(losses.values()).backward()
    assert all(p.grad is not None for n, p in ours.named_parameters() if p.requires_grad and "roi_heads" not in n)


def test_coders():
    ours, other = detection._utils, theirs._utils
    boxes, proposals = boxes_in(64, 64, 6), boxes_in(64, 64, 6)
    codes = reference.randn(6, 12)
    (b, p, c), _ = both([boxes, proposals, codes])
    for weights in ((1.0, 1.0, 1.0, 1.0), (10.0, 10.0, 5.0, 5.0)):
        mine, wanted = ours.BoxCoder(weights), other.BoxCoder(weights)
        same(mine.encode([b[:2], b[2:]], [p[:2], p[2:]]), list(wanted.encode([boxes[:2], boxes[2:]], [proposals[:2], proposals[2:]])))
        same(mine.encode_single(b, p), wanted.encode_single(boxes, proposals))
        same(mine.decode(c, [p[:4], p[4:]]), wanted.decode(codes, [proposals[:4], proposals[4:]]))
        same(mine.decode_single(c * 9, p), wanted.decode_single(codes * 9, proposals), 1e-3)
    same(ours.encode_boxes(b, p, torch.ones(4)), other.encode_boxes(boxes, proposals, reference.ones(4)))
    for by_size in (True, False):
        mine, wanted = ours.BoxLinearCoder(by_size), other.BoxLinearCoder(by_size)
        same(mine.encode(b, p), wanted.encode(boxes, proposals))
        same(mine.decode(c[:, :4], p), wanted.decode(codes[:, :4], proposals), 1e-4)
    same(ours.BoxCoder((1.0,) * 4).decode(c[:0], [p[:0]]), other.BoxCoder((1.0,) * 4).decode(codes[:0], [proposals[:0]]))
    for bad in ((c, p), (None, [p])):
        with pytest.raises(AssertionError):
            ours.BoxCoder((1.0,) * 4).decode(*bad)
    for kind, settings in (("l1", None), ("smooth_l1", {"beta": 0.5}), ("ciou", None), ("diou", {"eps": 1e-3}), ("giou", None)):
        mine, wanted = ours.BoxCoder((1.0,) * 4), other.BoxCoder((1.0,) * 4)
        same(ours._box_loss(kind, mine, p, b, c[:, :4] / 9, settings), other._box_loss(kind, wanted, proposals, boxes, codes[:, :4] / 9, settings), 1e-3)
    with pytest.raises(AssertionError, match="Unsupported loss: l3"):
        ours._box_loss("l3", mine, p, b, c[:, :4])


def test_matchers_and_samples():
    ours, other = detection._utils, theirs._utils
    overlaps = reference.rand(4, 30)
    overlaps[1, 3] = overlaps[1, 7] = 1.0
    mine = both(overlaps)[0]
    for arguments in ((0.7, 0.3, True), (0.9, 0.8, False), (0.5, 0.5)):
        same(ours.Matcher(*arguments)(mine), other.Matcher(*arguments)(overlaps))
    same(ours.SSDMatcher(0.5)(mine), other.SSDMatcher(0.5)(overlaps))
    with pytest.raises(AssertionError, match="low_threshold should be <= high_threshold"):
        ours.Matcher(0.1, 0.2)
    for empty, missing in ((mine[:0], "ground-truth"), (mine[:, :0], "proposal")):
        with pytest.raises(ValueError, match=f"No {missing} boxes available"):
            ours.Matcher(0.7, 0.3)(empty)
    labels, wanted = both([reference.randint(-1, 3, (40,)), reference.tensor([0, 0, 1]), reference.zeros(0, dtype=reference.int64)])
    seed(1)
    same(ours.BalancedPositiveNegativeSampler(10, 0.3)(labels), list(other.BalancedPositiveNegativeSampler(10, 0.3)(wanted)))


def test_anchors():
    maps, wanted = both([reference.rand(2, 3, 8, 10), reference.rand(2, 3, 4, 5)])
    sizes = [(60, 80), (64, 75)]
    lists = detection.image_list.ImageList(torch.zeros(2, 3, 64, 80), sizes), theirs.image_list.ImageList(reference.zeros(2, 3, 64, 80), sizes)
    assert lists[0].to("cpu").image_sizes == sizes
    for arguments in ({"sizes": ((8, 16), (32,)), "aspect_ratios": ((0.5, 1.0), (2.0,))}, {"sizes": (8, 16), "aspect_ratios": (0.5, 1.0)}):
        mine, other = detection.anchor_utils.AnchorGenerator(**arguments), theirs.anchor_utils.AnchorGenerator(**arguments)
        assert mine.num_anchors_per_location() == other.num_anchors_per_location() and repr(mine) == repr(other)
        same(mine(lists[0], maps), other(lists[1], wanted))
    with pytest.raises(AssertionError, match="Anchors should be"):
        mine(lists[0], maps[:1])
    for arguments in ({"scales": [0.1, 0.5, 1.5]}, {"steps": [8, 16]}, {"clip": False, "scales": [1.2, 0.5, 1.5]}):
        mine, other = (m.anchor_utils.DefaultBoxGenerator([[2], [2, 3]], **arguments) for m in (detection, theirs))
        assert mine.num_anchors_per_location() == other.num_anchors_per_location() and repr(mine) == repr(other)
        same(mine(lists[0], maps), other(lists[1], wanted), 1e-4)
    assert detection.anchor_utils.DefaultBoxGenerator([[2]]).scales == theirs.anchor_utils.DefaultBoxGenerator([[2]]).scales
    with pytest.raises(ValueError, match="aspect_ratios and steps should have the same length"):
        detection.anchor_utils.DefaultBoxGenerator([[2]], steps=[1, 2])


def test_transform():
    (images, targets), (their_images, their_targets) = both(pictures())
    for arguments in ({}, {"size_divisible": 1, "fixed_size": (50, 40)}, {"_skip_resize": True}):
        mine, other = (m.transform.GeneralizedRCNNTransform((40, 50), 70, [0.4] * 3, [0.2] * 3, **arguments) for m in (detection, theirs))
        assert repr(mine) == repr(other)
        for training in (True, False):
            mine.train(training), other.train(training)
            seed(2)
            (ours, own), (wanted, their_own) = mine(images, targets), other(their_images, their_targets)
            same(ours.tensors, wanted.tensors, 5e-5)
            same(own, their_own, 1e-4)
            assert ours.image_sizes == wanted.image_sizes
    for each in (*own, *their_own):
        each["masks"] = each["masks"][:, None, :14, :14] / 2
    same(mine.postprocess(own, ours.image_sizes, SIZES), other.postprocess(their_own, wanted.image_sizes, SIZES), 1e-4)
    with pytest.raises(TypeError, match="Expected input images to be of floating type"):
        mine([torch.zeros(3, 8, 8, dtype=torch.uint8)])
    with pytest.raises(ValueError, match="images is expected to be a list of 3d tensors"):
        mine([torch.zeros(1, 3, 8, 8)])
    with pytest.warns(UserWarning, match="knows no arguments colour"):
        detection.transform.GeneralizedRCNNTransform(40, 50, [0.5] * 3, [0.5] * 3, colour=1)


def test_parts_of_regions():
    ours, other = detection.roi_heads, theirs.roi_heads
    boxes = boxes_in(60, 60, 4) - 5
    masks, points, maps = reference.rand(4, 1, 14, 14), reference.rand(4, 5, 3) * 60, reference.rand(4, 5, 14, 14)
    points[0, 0, :2] = boxes[0, 2:]
    (b, m, k, h), _ = both([boxes, masks, points, maps])
    same(ours.paste_masks_in_image(m, b, (40, 50)), other.paste_masks_in_image(masks, boxes, (40, 50)))
    same(ours.paste_masks_in_image(m[:0], b[:0], (40, 50)), other.paste_masks_in_image(masks[:0], boxes[:0], (40, 50)))
    same(ours.expand_boxes(b, 1.2), other.expand_boxes(boxes, 1.2))
    same(ours.keypoints_to_heatmap(k, b, 14), list(other.keypoints_to_heatmap(points, boxes, 14)))
    same(ours.heatmaps_to_keypoints(h, b), list(other.heatmaps_to_keypoints(maps, boxes)))
    for count in (4, 0):
        same(ours.keypointrcnn_inference(h[:count], [b[:count]]), list(other.keypointrcnn_inference(maps[:count], [boxes[:count]])))
    with pytest.raises(ValueError, match="should be equal"):
        ours.keypointrcnn_loss(h[..., :3], [b], [k], [torch.arange(4)])
    assert float(ours.keypointrcnn_loss(h[:0], [b[:0]], [k], [torch.arange(0)])) == 0


def test_choices_of_backbones():
    for make in (lambda m: m.backbone_utils.resnet_fpn_backbone("resnet18", False, trainable_layers=2, returned_layers=[2, 3]),
                 lambda m: m.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5),
                 lambda m: m.backbone_utils.mobilenet_backbone(backbone_name="mobilenet_v2", weights=None, fpn=False, trainable_layers=0),
                 lambda m: m.backbone_utils.mobilenet_backbone(backbone_name="mobilenet_v3_large", weights=None, fpn=True, returned_layers=[1, 3])):
        ours, other = pair(lambda library: make(library[2]))
        assert ours.out_channels == other.out_channels
        assert [(n, p.requires_grad) for n, p in ours.named_parameters()] == [(n, p.requires_grad) for n, p in other.named_parameters()]
        x = both(reference.rand(1, 3, 64, 64))
        ours.eval(), other.eval()
        with torch.no_grad(), reference.no_grad():
            found, wanted = ours(x[0]), other(x[1])
        same(dict(found) if isinstance(found, dict) else found, dict(wanted) if isinstance(wanted, dict) else wanted, 1e-4, 1e-4)
    for options in ({"trainable_layers": 6}, {"returned_layers": [0, 1]}):
        with pytest.raises(ValueError):
            detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None, **options)
        with pytest.raises(ValueError):
            options = {name: 9 if name == "trainable_layers" else [9] for name in options}
            detection.backbone_utils.mobilenet_backbone(backbone_name="mobilenet_v2", weights=None, fpn=True, **options)


@pytest.mark.parametrize("change,error,text", [
    (lambda t: t.update(boxes=[[1, 2, 3, 4]]), AssertionError, "Expected target boxes to be of type Tensor"),
    (lambda t: t.update(boxes=torch.ones(3, 5)), AssertionError, "tensor of shape"),
    (lambda t: t.update(boxes=torch.tensor([[9.0, 9.0, 9.0, 20.0]])), AssertionError, "positive height and width"),
    (lambda t: t.update(labels=t["labels"].float()), TypeError, "target labels must of int64 type"),
    (lambda t: t.pop("masks"), ValueError, "masks key"),
])
def test_bad_targets(change, error, text):
    images, targets = both(pictures())[0]
    change(targets[0])
    with pytest.raises(error, match=text):
        mask(OURS)(images, targets)


def test_bad_arguments():
    backbone = small_backbone(OURS)
    for model in (faster, retina, ssd):
        with pytest.raises(AssertionError, match="targets should not be none when in training mode"):
            model(OURS)([torch.rand(3, 64, 64)])
    for make, error in (
            (lambda: detection.FasterRCNN(nn.Identity(), 2), ValueError), (lambda: detection.RetinaNet(nn.Identity(), 2), ValueError),
            (lambda: detection.FCOS(nn.Identity(), 2), ValueError), (lambda: detection.MaskRCNN(nn.Identity(), 2), ValueError),
            (lambda: detection.FasterRCNN(backbone), ValueError), (lambda: detection.FasterRCNN(backbone, 2, box_predictor=nn.Identity()), ValueError),
            (lambda: detection.FasterRCNN(backbone, 2, rpn_anchor_generator=3), TypeError),
            (lambda: detection.MaskRCNN(backbone, 2, mask_roi_pool=3), TypeError),
            (lambda: detection.MaskRCNN(backbone, 2, mask_predictor=nn.Identity()), ValueError),
            (lambda: detection.KeypointRCNN(backbone, 2, keypoint_predictor=nn.Identity(), num_keypoints=3), ValueError),
            (lambda: detection.FCOS(backbone, 2, anchor_generator=anchors(detection, (8,))), ValueError),
            (lambda: detection.ssd.SSD(Maps.of(OURS), detection.anchor_utils.DefaultBoxGenerator([[2]]), (40, 40), 2), ValueError),
            (lambda: detection.fasterrcnn_resnet50_fpn(weights="none"), ValueError),
            (lambda: detection.fasterrcnn_resnet50_fpn(weights="COCO_V1", num_classes=3), ValueError),
            (lambda: detection.keypointrcnn_resnet50_fpn(weights="COCO_V1", num_keypoints=3), ValueError)):
        with pytest.raises(error):
            make()
    with pytest.raises(KeyError):
        detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet99", weights=None)
    with pytest.raises(TypeError):
        detection.backbone_utils.resnet_fpn_backbone(backbone_name="resnet18")
    with pytest.raises(IndexError):
        faster(OURS).eval()([])
    with pytest.warns(UserWarning, match="trainable_backbone_layers has no effect"):
        detection.ssdlite320_mobilenet_v3_large(weights_backbone=None, trainable_backbone_layers=2)


def test_weights():
    for name in dir(theirs):
        if name.endswith("_Weights"):
            mine, wanted = getattr(detection, name), getattr(theirs, name)
            assert list(mine.__members__) == list(wanted.__members__)
            for entry in wanted.__members__:
                ours, other = mine[entry], wanted[entry]
                assert ours.url == other.url and repr(ours) == repr(other) and repr(ours.transforms()) == repr(other.transforms())
                for key in ("categories", "keypoint_names", "num_params", "min_size", "_metrics"):
                    assert ours.meta.get(key) == other.meta.get(key)
    assert models.get_weight("FCOS_ResNet50_FPN_Weights.COCO_V1") is detection.FCOS_ResNet50_FPN_Weights.DEFAULT


def test_loading_weights_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    os.makedirs(tmp_path / "hub" / "checkpoints")
    for name, enum in (("fasterrcnn_mobilenet_v3_large_320_fpn", detection.FasterRCNN_MobileNet_V3_Large_320_FPN_Weights),
                       ("retinanet_resnet50_fpn", detection.RetinaNet_ResNet50_FPN_Weights)):
        make = getattr(detection, name)
        made = make(weights_backbone=None)
        state = {key: value for key, value in made.state_dict().items() if "num_batches" not in key}  # of norms that are frozen
        torch.save(state, tmp_path / "hub" / "checkpoints" / os.path.basename(enum.DEFAULT.url))
        loaded = make(weights="DEFAULT")
        for key, value in loaded.state_dict().items():
            assert torch.equal(value, state[key])
        frozen = [module for module in loaded.modules() if isinstance(module, ops.FrozenBatchNorm2d)]
        assert frozen and all(module.eps == (0.0 if name.startswith("retina") else 1e-5) for module in frozen)
        assert not all(parameter.requires_grad for parameter in loaded.parameters())


def test_weights_of_older_versions():
    """Convolutions of the heads were bare before: state dicts without a version load all the same."""
    for make, renamed in ((faster, {"rpn.head.conv.0.0.": "rpn.head.conv."}),
                          (mask, {"rpn.head.conv.0.0.": "rpn.head.conv.", **{f"mask_head.{i}.0.": f"mask_head.mask_fcn{i + 1}." for i in range(2)}}),
                          (retina, {f"_head.conv.{i}.0.": f"_head.conv.{2 * i}." for i in reversed(range(4))})):
        made, other = make(OURS), make(OURS)
        old = {}
        for key, value in made.state_dict().items():
            for new, before in renamed.items():
                if new in key:
                    key = key.replace(new, before)
                    break
            old[key.replace("_blocks.0.0.", "_blocks.0.").replace("_blocks.1.0.", "_blocks.1.").replace("_blocks.2.0.", "_blocks.2.")] = value
        other.load_state_dict(old)
        for a, b in zip(made.parameters(), other.parameters()):
            assert torch.equal(a, b)
