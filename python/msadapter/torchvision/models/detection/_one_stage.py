"""Detectors that predict classes and boxes at every anchor at once."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models.detection._utils import _topk_min
from msadapter.torchvision.models.detection.faster_rcnn import MEAN, STD
from msadapter.torchvision.models.detection.generalized_rcnn import Detector
from msadapter.torchvision.models.detection.transform import GeneralizedRCNNTransform
from msadapter.torchvision.ops import boxes as box_ops


def focal_head(in_channels, out_channels, prior_probability):
    """A convolution whose results' sigmoid is prior_probability at first, for the focal loss (Lin et al., 2017)."""
    layer = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=1, padding=1)
    nn.init.normal_(layer.weight, std=0.01)
    nn.init.constant_(layer.bias, -math.log((1 - prior_probability) / prior_probability))
    return layer


class OneStage(Detector):
    """backbone, head and anchor_generator; subclasses define compute_loss and postprocess_detections."""

    def _set_up(self, min_size, max_size, image_mean, image_std, score_thresh, nms_thresh, detections_per_img, topk_candidates, **kwargs):
        """Sets what comes before and after the network."""
        self.transform = GeneralizedRCNNTransform(min_size, max_size, list(MEAN) if image_mean is None else image_mean,
                                                  list(STD) if image_std is None else image_std, **kwargs)
        self.score_thresh, self.nms_thresh, self.detections_per_img, self.topk_candidates = score_thresh, nms_thresh, detections_per_img, topk_candidates

    def _found(self, images, features, targets):
        features = list(features.values())
        outputs, anchors = self.head(features), self.anchor_generator(images, features)
        places = [maps.size(2) * maps.size(3) for maps in features]
        per_level = [each * (outputs["cls_logits"].size(1) // sum(places)) for each in places]
        if self.training:
            return self._losses(targets, outputs, anchors, per_level), []
        return {}, self._detections(outputs, anchors, per_level, images.image_sizes)

    def _detections(self, outputs, anchors, per_level, image_shapes):
        by_level = {name: list(values.split(per_level, dim=1)) for name, values in outputs.items()}
        return self.postprocess_detections(by_level, [list(own.split(per_level)) for own in anchors], image_shapes)

    def _suppressed(self, boxes, scores, labels):
        """Lists of candidates as detections of one image."""
        boxes, scores, labels = torch.cat(boxes), torch.cat(scores), torch.cat(labels)
        keep = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)[:self.detections_per_img]
        return {"boxes": boxes[keep], "scores": scores[keep], "labels": labels[keep]}

    def _best_of_levels(self, score, names, decode, outputs, anchors, image_shapes):
        """Detections of each image out of the topk_candidates best of each level; score(outputs[name] for names) gives scores (L * classes,)."""
        detections = []
        for i, (own, size) in enumerate(zip(anchors, image_shapes)):
            found = [], [], []
            for level, boxes in enumerate(own):
                classes = outputs["cls_logits"][level].shape[-1]
                scores = score(*(outputs[name][level][i] for name in names))
                above = torch.where(scores > self.score_thresh)[0]
                scores, best = scores[above].topk(_topk_min(above, self.topk_candidates, 0))
                best = above[best]
                places = torch.div(best, classes, rounding_mode="floor")
                boxes = box_ops.clip_boxes_to_image(decode(outputs["bbox_regression"][level][i][places], boxes[places]), size)
                for values, more in zip(found, (boxes, scores, best % classes)):
                    values.append(more)
            detections.append(self._suppressed(*found))
        return detections
