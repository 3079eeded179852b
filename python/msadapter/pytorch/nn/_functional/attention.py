"""Multi-head attention as a function (Vaswani et al. 2017)."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.activation import dropout, softmax
from msadapter.pytorch.nn._functional.convolution import linear
from msadapter.pytorch.nn._functional.vision import pad


def _in_projection_packed(q, k, v, w, b=None):
    """The three projections, whose weights lie one below the other in w (3E, E)."""
    width = q.size(-1)
    if k is v:
        if q is k:
            return linear(q, w, b).chunk(3, dim=-1)
        w_q, w_kv = w.split([width, 2 * width])
        b_q, b_kv = (None, None) if b is None else b.split([width, 2 * width])
        return (linear(q, w_q, b_q),) + tuple(linear(k, w_kv, b_kv).chunk(2, dim=-1))
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, need_attn_weights=True, is_causal=False):
    """(softmax(query key^T / sqrt(E) + mask) value, the softmax): query (..., L, E), key (..., S, E), value (..., S, Ev).

    PyTorch leaves the second result open where need_attn_weights is False: it is there in both cases.
    """
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, p=dropout_p)
    return weights @ value, weights


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """softmax(query key^T * scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev); the result is (..., L, Ev).

    A boolean attn_mask lets the places that are True take part, another one is added. is_causal lets each row see the places up to its
    own. scale is 1 / sqrt(E) unless given; with enable_gqa heads of key and value are shared by groups of the query's. RuntimeError where is_causal
    and attn_mask are both given.
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        if query.size(-3) % key.size(-3) or query.size(-3) % value.size(-3):
            raise RuntimeError("scaled_dot_product_attention: with enable_gqa the number of heads in key and value must divide the number of heads in query")
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if scale is not None:
        query = query * (scale * math.sqrt(query.size(-1)))
    return _scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, False, is_causal)[0]


def _require(condition, message):
    if not condition:
        raise AssertionError(message)


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether the input is batched. Raises AssertionError for shapes that do not fit."""
    n = query.dim()
    _require(n in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    kind = "batched (3-D)" if n == 3 else "unbatched (2-D)"
    _require(key.dim() == n and value.dim() == n, f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and "
             f"{value.dim()}-D tensors respectively")
    if key_padding_mask is not None:
        _require(key_padding_mask.dim() == n - 1, f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found "
                 f"{key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None:
        _require(attn_mask.dim() in (2, 3), f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                 "tensor instead")
        if n == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            _require(tuple(attn_mask.shape) == expected, f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return n == 3


def _checked_mask(attn_mask, rows, columns, batch):
    if attn_mask.dtype == torch.uint8:
        import warnings

        warnings.warn("Byte tensor for attn_mask in nn.MultiheadAttention is deprecated. Use bool tensor instead.")
        attn_mask = attn_mask.to(torch.bool)
    else:
        _require(attn_mask.is_floating_point() or attn_mask.dtype == torch.bool,
                 f"Only float, byte, and bool types are supported for attn_mask, not {attn_mask.dtype}")
    expected = (rows, columns) if attn_mask.dim() == 2 else (batch, rows, columns)
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected}.")
    return attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
                                 dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
                                 attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
                                 static_k=None, static_v=None, average_attn_weights=True):
    """Attention of query (L, N, E) over key and value (S, N, E), or without N: the result, and the weights or None."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, batch, width = query.shape
    src_len = key.shape[0]
    _require(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head_dim = width // num_heads
    _require(head_dim * num_heads == width, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(key.shape[:2] == value.shape[:2], f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            _require(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        b_q, b_k, b_v = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = linear(query, q_proj_weight, b_q), linear(key, k_proj_weight, b_k), linear(value, v_proj_weight, b_v)
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, tgt_len, src_len, batch * num_heads)
    if key_padding_mask is not None and key_padding_mask.dtype == torch.uint8:
        import warnings

        warnings.warn("Byte tensor for key_padding_mask in nn.MultiheadAttention is deprecated. Use bool tensor instead.")
        key_padding_mask = key_padding_mask.to(torch.bool)

    def one_more(mask):
        return mask if mask is None else pad(mask, (0, 1))

    if bias_k is not None and bias_v is not None:
        _require(static_k is None and static_v is None, "bias cannot be added to static key or value.")
        k, v = torch.cat([k, bias_k.repeat(1, batch, 1)]), torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = one_more(attn_mask), one_more(key_padding_mask)
    else:
        _require(bias_k is None and bias_v is None, "bias_k and bias_v go together")

    def split_heads(x):
        return x.contiguous().view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)

    def checked_static(static, name):
        _require(static.size(0) == batch * num_heads, f"expecting {name}.size(0) of {batch * num_heads}, but got {static.size(0)}")
        _require(static.size(2) == head_dim, f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
        return static

    q = split_heads(q)
    k = split_heads(k) if static_k is None else checked_static(static_k, "static_k")
    v = split_heads(v) if static_v is None else checked_static(static_v, "static_v")
    if add_zero_attn:
        zeros = torch.zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], dim=1), torch.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = one_more(attn_mask), one_more(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        _require(tuple(key_padding_mask.shape) == (batch, src_len),
                 f"expecting key_padding_mask shape of {(batch, src_len)}, but got {key_padding_mask.shape}")
        key_padding_mask = key_padding_mask.view(batch, 1, 1, src_len).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, src_len)
        attn_mask = _merged(attn_mask, key_padding_mask)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(attn_mask, float("-inf"))
    output, weights = _scaled_dot_product_attention(q, k, v, attn_mask, dropout_p if training else 0.0)
    output = linear(output.transpose(0, 1).contiguous().view(tgt_len * batch, width), out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, batch, output.size(1))
    if not batched:
        output = output.squeeze(1)
    if not need_weights:
        return output, None
    weights = weights.view(batch, num_heads, tgt_len, src_len)
    if average_attn_weights:
        weights = weights.sum(dim=1) / num_heads
    return output, weights if batched else weights.squeeze(0)


def _merged(attn_mask, key_padding_mask):
    """One mask of two."""
    if attn_mask is None:
        return key_padding_mask
    if attn_mask.dtype == torch.bool:
        return attn_mask.logical_or(key_padding_mask)
    if key_padding_mask.dtype == torch.bool:
        return attn_mask.masked_fill(key_padding_mask, float("-inf"))
    return attn_mask + key_padding_mask
