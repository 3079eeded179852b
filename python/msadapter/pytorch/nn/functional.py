"""torch.nn.functional: operators of the extension under the names and arguments that torch gives them, by family in _functional/."""

from msadapter.pytorch.nn._functional.activation import (alpha_dropout, celu, celu_, dropout, dropout1d, dropout2d, dropout3d, elu,  # noqa: F401
                                                         elu_, feature_alpha_dropout, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid,
                                                         hardswish, hardtanh, hardtanh_, leaky_relu, leaky_relu_, log_softmax, logsigmoid,
                                                         mish, prelu, relu, relu6, relu_, rrelu, rrelu_, selu, selu_, sigmoid, silu, softmax,
                                                         softmin, softplus, softshrink, softsign, tanh, tanhshrink, threshold, threshold_)
from msadapter.pytorch.nn._functional.attention import (  # noqa: F401
    _scaled_dot_product_attention, multi_head_attention_forward, scaled_dot_product_attention)
from msadapter.pytorch.nn._functional.convolution import (bilinear, conv1d, conv2d, conv3d, conv_tbc, conv_transpose1d,  # noqa: F401
                                                          conv_transpose2d, conv_transpose3d, linear)
from msadapter.pytorch.nn._functional.loss import (binary_cross_entropy, binary_cross_entropy_with_logits,  # noqa: F401
                                                   cosine_embedding_loss, cross_entropy, ctc_loss, gaussian_nll_loss, hinge_embedding_loss,
                                                   huber_loss, kl_div, l1_loss, margin_ranking_loss, mse_loss, multi_margin_loss,
                                                   multilabel_margin_loss, multilabel_soft_margin_loss, nll_loss, poisson_nll_loss,
                                                   smooth_l1_loss, soft_margin_loss, triplet_margin_loss, triplet_margin_with_distance_loss)
from msadapter.pytorch.nn._functional.normalization import (batch_norm, group_norm, instance_norm, layer_norm,  # noqa: F401
                                                            local_response_norm, normalize, rms_norm)
from msadapter.pytorch.nn._functional.pooling import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d,  # noqa: F401
                                                      adaptive_max_pool1d, adaptive_max_pool1d_with_indices, adaptive_max_pool2d,
                                                      adaptive_max_pool2d_with_indices, adaptive_max_pool3d,
                                                      adaptive_max_pool3d_with_indices, avg_pool1d, avg_pool2d, avg_pool3d,
                                                      fractional_max_pool2d, fractional_max_pool2d_with_indices, fractional_max_pool3d,
                                                      fractional_max_pool3d_with_indices, lp_pool1d, lp_pool2d, max_pool1d,
                                                      max_pool1d_with_indices, max_pool2d, max_pool2d_with_indices, max_pool3d,
                                                      max_pool3d_with_indices, max_unpool1d, max_unpool2d, max_unpool3d)
from msadapter.pytorch.nn._functional.sparse import (cosine_similarity, embedding, embedding_bag, one_hot, pairwise_distance,  # noqa: F401
                                                     pdist)
from msadapter.pytorch.nn._functional.vision import (affine_grid, channel_shuffle, fold, grid_sample, interpolate,  # noqa: F401
                                                     native_channel_shuffle, pad, pixel_shuffle, pixel_unshuffle, unfold, upsample,
                                                     upsample_bilinear, upsample_nearest)
