"""Names of the classes and keypoints of COCO (Lin et al. 2014), in the order of its numbers."""

_COCO_CATEGORIES = (
    "__background__,person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,N/A,stop sign,parking meter,bench,bird,cat,dog,"
    "horse,sheep,cow,elephant,bear,zebra,giraffe,N/A,backpack,umbrella,N/A,N/A,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,"
    "baseball glove,skateboard,surfboard,tennis racket,bottle,N/A,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,"
    "pizza,donut,cake,chair,couch,potted plant,bed,N/A,dining table,N/A,N/A,toilet,N/A,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,"
    "sink,refrigerator,N/A,book,clock,vase,scissors,teddy bear,hair drier,toothbrush").split(",")

_COCO_PERSON_CATEGORIES = ["no person", "person"]

_COCO_PERSON_KEYPOINT_NAMES = (
    "nose,left_eye,right_eye,left_ear,right_ear,left_shoulder,right_shoulder,left_elbow,right_elbow,left_wrist,right_wrist,left_hip,right_hip,left_knee,"
    "right_knee,left_ankle,right_ankle").split(",")

# What stands for the number of classes in weights.txt -> what is known of them.
NAMED = {
    "coco": {"categories": _COCO_CATEGORIES},
    "person": {"categories": _COCO_PERSON_CATEGORIES, "keypoint_names": _COCO_PERSON_KEYPOINT_NAMES},
}
