"""Host versions of the operators that PyTorch has for CUDA only, and what operators touch that take indices.

Each host version takes and gives CPU tensors. Those in SEEDED draw random numbers from the keyword argument generator.
"""

import math

import torch

aten = torch.ops.aten

_GOLDEN = 0x9E3779B97F4A7C15


def host_generator(seed, offset):
    """A CPU generator for a state of a CUDA generator: equal states give equal numbers. Offset 0 gives the seed's own."""
    mixed = (seed + offset // 4 * _GOLDEN) & 0xFFFFFFFFFFFFFFFF
    return torch.Generator().manual_seed(mixed)


def _wide(tensor):
    """The tensor in the precision in which CUDA kernels accumulate."""
    return tensor.float() if tensor is not None and tensor.dtype in (torch.float16, torch.bfloat16) else tensor


# Recurrent cells


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = _wide(input_gates) + _wide(hidden_gates)
    if input_bias is not None:
        gates = gates + _wide(input_bias) + _wide(hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * _wide(cx) + i * g
    hy = o * cy.tanh()
    dtype = cx.dtype
    return hy.to(dtype), cy.to(dtype), torch.cat([i, f, g, o], 1).to(dtype)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    dtype = workspace.dtype
    i, f, g, o = _wide(workspace).chunk(4, 1)
    tanh = _wide(cy).tanh()
    grad_h = torch.zeros_like(tanh) if grad_hy is None else _wide(grad_hy)
    grad_c = grad_h * o * (1 - tanh * tanh)
    if grad_cy is not None:
        grad_c = grad_c + _wide(grad_cy)
    grad_gates = torch.cat(
        [
            grad_c * g * (1 - i) * i,
            grad_c * _wide(cx) * (1 - f) * f,
            grad_c * i * (1 - g * g),
            grad_h * tanh * (1 - o) * o,
        ],
        1,
    ).to(dtype)
    return grad_gates, (grad_c * f).to(dtype), grad_gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    inputs, hidden = _wide(input_gates), _wide(hidden_gates)
    if input_bias is not None:
        inputs, hidden = inputs + _wide(input_bias), hidden + _wide(hidden_bias)
    input_reset, input_update, input_new = inputs.chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = hidden.chunk(3, 1)
    reset = (input_reset + hidden_reset).sigmoid()
    update = (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    state = _wide(hx)
    hy = new + update * (state - new)
    dtype = hx.dtype
    return hy.to(dtype), torch.cat([reset, update, new, state, hidden_new], 1).to(dtype)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    dtype = workspace.dtype
    reset, update, new, state, hidden_new = _wide(workspace).chunk(5, 1)
    grad = _wide(grad_hy)
    grad_update = grad * (state - new) * (1 - update) * update
    grad_new = grad * (1 - update) * (1 - new * new)
    grad_reset = grad_new * hidden_new * (1 - reset) * reset
    inputs = torch.cat([grad_reset, grad_update, grad_new], 1).to(dtype)
    hidden = torch.cat([grad_reset, grad_update, grad_new * reset], 1).to(dtype)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, (grad * update).to(dtype), *biases


# Attention


def _attention_scores(query, key, bias, causal, scale):
    scores = (query @ key.transpose(-2, -1)) * scale
    if bias is not None:
        scores = scores + bias
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores


def _repeat_heads(query, tensor):
    groups = query.size(1) // tensor.size(1)
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)


def _dropout_mask(like, p, generator):
    return torch.empty_like(like).bernoulli_(1 - p, generator=generator).div_(1 - p)


def _bias_of(bias):
    """An additive bias: a Boolean one keeps where it is true."""
    if bias is None or bias.dtype != torch.bool:
        return bias
    return torch.zeros(bias.shape).masked_fill_(bias.logical_not(), -math.inf)


def _attention(query, key, value, bias, p, causal, scale, state):
    """Attention and the logarithm of its normaliser; state seeds the dropout."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    bias = _bias_of(bias)
    if p == 0 and query.size(1) == key.size(1) and query.size(-1) == value.size(-1):
        bias = bias if bias is None else bias.to(query.dtype)
        return aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, attn_mask=bias, scale=scale)
    key, value = _repeat_heads(query, key), _repeat_heads(query, value)
    scores = _attention_scores(query.float(), key.float(), bias, causal, scale)
    weights = torch.softmax(scores, -1).nan_to_num_(0)
    if p > 0:
        weights *= _dropout_mask(weights, p, host_generator(*state))
    return (weights @ value.float()).to(query.dtype), torch.logsumexp(scores, -1)


def _attention_backward(grad, query, key, value, bias, out, logsumexp, p, causal, scale, state, want_bias):
    """The gradients of query, key, value and bias."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    additive = _bias_of(bias)
    if p == 0 and query.size(1) == key.size(1) and query.size(-1) == value.size(-1) and not want_bias:
        mask = additive if additive is None else additive.to(query.dtype)
        grads = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, query, key, value, out, logsumexp, 0.0, causal, attn_mask=mask, scale=scale
        )
        return (*grads, None)
    all_keys, all_values = _repeat_heads(query, key).float(), _repeat_heads(query, value).float()
    scores = _attention_scores(query.float(), all_keys, additive, causal, scale)
    weights = torch.softmax(scores, -1).nan_to_num_(0)
    keep = _dropout_mask(weights, p, host_generator(*state)) if p > 0 else 1
    grad = grad.float()
    grad_value = (weights * keep).transpose(-2, -1) @ grad
    grad_weights = (grad @ all_values.transpose(-2, -1)) * keep
    grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdim=True))
    grad_query = grad_scores @ all_keys * scale
    grad_key = grad_scores.transpose(-2, -1) @ query.float() * scale
    if key.size(1) != query.size(1):
        grad_key = grad_key.unflatten(1, (key.size(1), -1)).sum(2)
    if value.size(1) != query.size(1):
        grad_value = grad_value.unflatten(1, (value.size(1), -1)).sum(2)
    grad_bias = grad_scores.sum_to_size(bias.shape).to(bias.dtype) if want_bias else None
    return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype), grad_bias


def _heads_inside(tensor):
    """The same tensor stored as (batch, sequence, head, element), the order in which fused attention writes it."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def _state_tensor(generator):
    return torch.tensor([generator.initial_seed() & (1 << 63) - 1, 0], dtype=torch.int64)


def _state_of(seed):
    return tuple(seed.flatten().tolist()[:2]) if seed.numel() > 1 else (int(seed), 0)


def _flash_attention(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None, generator):
    state = _state_tensor(generator)
    out, logsumexp = _attention(query, key, value, None, dropout_p, is_causal, scale, _state_of(state))
    unused = torch.empty((), dtype=torch.int64)
    sizes = query.size(2), key.size(2)
    return _heads_inside(out), logsumexp.contiguous(), None, None, *sizes, state, unused, query.new_empty(0)


def _flash_attention_backward(
    grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
    philox_offset, *, scale=None
):
    state = _state_of(philox_seed)
    grads = _attention_backward(
        grad_out, query, key, value, None, out, logsumexp, dropout_p, is_causal, scale, state, False
    )
    return tuple(map(_heads_inside, grads[:3]))


def _efficient_attention(
    query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None, generator
):
    state = _state_tensor(generator)
    out, logsumexp = _attention(query, key, value, attn_bias, dropout_p, is_causal, scale, _state_of(state))
    rows = -(-query.size(2) // 32) * 32 if compute_log_sumexp else 0
    padded = torch.full((*query.shape[:2], rows), math.inf)
    if rows:
        padded[..., : query.size(2)] = logsumexp
    return _heads_inside(out), padded, state[0].clone(), state[1].clone()


def _efficient_attention_backward(
    grad_out, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask,
    is_causal=False, *, scale=None
):
    logsumexp = logsumexp[..., : query.size(2)].contiguous()
    state = int(philox_seed), int(philox_offset)
    grads = _attention_backward(
        grad_out, query, key, value, attn_bias, out, logsumexp, dropout_p, is_causal, scale, state,
        attn_bias is not None and grad_input_mask[3]
    )
    return (*map(_heads_inside, grads[:3]), grads[3])


def _cudnn_attention(
    query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None,
    generator
):
    state = _state_tensor(generator)
    out, logsumexp = _attention(query, key, value, attn_bias, dropout_p, is_causal, scale, _state_of(state))
    sizes = query.size(2), key.size(2)
    logsumexp = logsumexp.contiguous().unsqueeze(-1)
    return _heads_inside(out), logsumexp, None, None, *sizes, state[0].clone(), state[1].clone(), query.new_empty(0)


def _cudnn_attention_backward(
    grad_out, query, key, value, out, logsumexp, philox_seed, philox_offset, attn_bias, cum_seq_q, cum_seq_k, max_q, max_k,
    dropout_p, is_causal, *, scale=None
):
    state = int(philox_seed), int(philox_offset)
    grads = _attention_backward(
        grad_out, query, key, value, attn_bias, out, logsumexp.squeeze(-1), dropout_p, is_causal, scale, state, False
    )
    return tuple(map(_heads_inside, grads[:3]))


# Dropout


def _native_dropout(input, p, train=None, *, generator):
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
    mask = torch.empty_like(input, dtype=torch.bool).bernoulli_(1 - p, generator=generator)
    return input.mul(mask).mul_(1 / (1 - p)), mask


def _fused_dropout(self, p, generator=None):
    mask = torch.empty_like(self, dtype=torch.uint8).bernoulli_(p, generator=generator)
    return self.mul(mask).mul_(1 / p), mask


def _masked_scale(self, mask, scale):
    return self.mul(mask).mul_(scale)


# Convolution and normalisation by cuDNN's names


def _cudnn_convolution(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32):
    return aten.convolution(self, weight, None, stride, padding, dilation, False, [0] * len(stride), groups)


def _cudnn_convolution_transpose(
    self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, allow_tf32
):
    return aten.convolution(self, weight, None, stride, padding, dilation, True, output_padding, groups)


def _cudnn_convolution_relu(self, weight, bias, stride, padding, dilation, groups):
    return aten.convolution(self, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups).relu_()


def _cudnn_convolution_add_relu(self, weight, z, alpha, bias, stride, padding, dilation, groups):
    sum_ = aten.convolution(self, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)
    return sum_.add_(z, alpha=1 if alpha is None else alpha).relu_()


def _depthwise_convolution(self, weight, kernel_size, bias, stride, padding, dilation):
    return aten.convolution(self, weight, bias, stride, padding, dilation, False, [0] * len(stride), self.size(1))


def _cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, epsilon):
    results = aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, epsilon)
    return (*results, torch.empty(0, dtype=torch.uint8))


def _cudnn_batch_norm_backward(input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserve):
    return aten.native_batch_norm_backward(
        grad_output, input, weight, running_mean, running_var, save_mean, save_var, True, epsilon, [True, True, True]
    )


def _rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask):
    inner = list(range(input.dim() - len(normalized_shape), input.dim()))
    outer = list(range(input.dim() - len(normalized_shape)))
    grad, rstd = _wide(grad_out), _wide(rstd)
    normal = _wide(input) * rstd
    scaled = grad if weight is None else grad * _wide(weight)
    grad_input = rstd * (scaled - normal * (scaled * normal).mean(inner, keepdim=True)) if output_mask[0] else None
    grad_weight = None
    if output_mask[1] and weight is not None:
        grad_weight = (grad * normal).sum(outer) if outer else grad * normal
        grad_weight = grad_weight.to(weight.dtype)
    return None if grad_input is None else grad_input.to(input.dtype), grad_weight


# Batch normalisation over several processes: channels are dimension 1


def _by_channel(values, like):
    return values.view(-1, *[1] * (like.dim() - 2))


def _but_channels(tensor):
    return [d for d in range(tensor.dim()) if d != 1]


def _batch_norm_stats(input, eps):
    wide = _wide(input)
    return wide.mean(_but_channels(wide)), (wide.var(_but_channels(wide), correction=0) + eps).rsqrt()


def _batch_norm_gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, count):
    return _batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, torch.full((mean.size(0),), float(count))
    )


def _batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    counts = counts.to(mean.dtype).view(-1, 1)
    n = counts.sum()
    all_mean = (mean * counts).sum(0) / n
    variance = ((invstd**-2 - eps + (mean - all_mean) ** 2) * counts).sum(0) / n
    if running_mean is not None:
        running_mean.lerp_(all_mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((variance * (n / (n - 1))).to(running_var.dtype), momentum)
    return all_mean, (variance + eps).rsqrt()


def _batch_norm_elemt(input, weight, bias, mean, invstd, eps):
    result = (_wide(input) - _by_channel(mean, input)) * _by_channel(invstd, input)
    if weight is not None:
        result = result * _by_channel(_wide(weight), input)
    if bias is not None:
        result = result + _by_channel(_wide(bias), input)
    return result.to(input.dtype)


def _batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    grad, others = _wide(grad_out), _but_channels(input)
    sum_dy = grad.sum(others)
    sum_dy_xmu = (grad * (_wide(input) - _by_channel(mean, input))).sum(others)
    dtype = sum_dy.dtype if weight is None else weight.dtype
    sums = (sum_dy, sum_dy_xmu) if input_g else (None, None)
    return *sums, (sum_dy_xmu * invstd).to(dtype) if weight_g else None, sum_dy.to(dtype) if bias_g else None


def _batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    n = count.sum()
    centred = (_wide(input) - _by_channel(mean, input)) * _by_channel(invstd**2 * sum_dy_xmu / n, input)
    scale = invstd if weight is None else invstd * _wide(weight)
    return ((_wide(grad_out) - _by_channel(sum_dy / n, input) - centred) * _by_channel(scale, input)).to(input.dtype)


# Sums and products of half-precision numbers. The host's own round each partial result to half precision, a GPU only the last.


def _layer_norm(input, normalized_shape, weight, bias, eps):
    """The mean and the reciprocal deviation stay in single precision, as the device's kernel keeps them for the gradients."""
    result, mean, rstd = aten.native_layer_norm(_wide(input), normalized_shape, _wide(weight), _wide(bias), eps)
    return result.to(input.dtype), mean, rstd


def _layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    mixed = any(t is not None and t.dtype != input.dtype for t in (weight, bias))
    wide = [t if mixed else _wide(t) for t in (grad_out, input, mean, rstd, weight, bias)]
    grads = aten.native_layer_norm_backward(wide[0], wide[1], normalized_shape, *wide[2:], output_mask)
    return tuple(g if g is None or mixed else g.to(input.dtype) for g in grads)


def _embedding_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    wide = aten.embedding_dense_backward(_wide(grad_output), indices, num_weights, padding_idx, scale_grad_by_freq)
    return wide.to(grad_output.dtype)


def _index_put(self, indices, values, accumulate=False, unsafe=False):
    wide = _wide(self) if accumulate else self
    aten._index_put_impl_(wide, indices, values.to(wide.dtype), accumulate, unsafe)
    return self if wide is self else self.copy_(wide)


def _histc(self, bins=100, min=0, max=0):
    # The host has none of integers, and half precision has no number for each of many elements.
    wide = self if self.dtype in (torch.float32, torch.float64) else self.double()
    return aten.histc(wide, bins, min, max).to(self.dtype)


def _softmax_by(operator):
    """(Logarithmic) softmax, with single precision results of half precision on demand, which the host's has not."""

    def call(self, dim, half_to_float):
        result = operator(_wide(self), dim, False)
        return result if half_to_float else result.to(self.dtype)

    return call


def _softmax_backward_by(operator):
    def call(grad_output, output, dim, input_dtype):
        return operator(_wide(grad_output), _wide(output), dim, _wide(output).dtype).to(input_dtype)

    return call


_softmax, _log_softmax = map(_softmax_by, (aten._softmax, aten._log_softmax))
_softmax_backward, _log_softmax_backward = map(_softmax_backward_by, (aten._softmax_backward_data, aten._log_softmax_backward_data))


def _prod(self, *dims, dtype=None):
    if dtype is not None:
        self = self.to(dtype)
    result = aten.prod(_wide(self), *dims)
    return result.to(self.dtype) if self.is_floating_point() else result


# Products of half-precision matrices with results of another dtype


def _mm_dtype(self, mat2, out_dtype):
    return aten.mm(self.to(out_dtype), mat2.to(out_dtype))


def _bmm_dtype(self, mat2, out_dtype):
    return aten.bmm(self.to(out_dtype), mat2.to(out_dtype))


def _addmm_dtype(self, mat1, mat2, out_dtype, *, beta=1, alpha=1):
    return aten.addmm(self.to(out_dtype), mat1.to(out_dtype), mat2.to(out_dtype), beta=beta, alpha=alpha)


def _baddbmm_dtype(self, batch1, batch2, out_dtype, *, beta=1, alpha=1):
    return aten.baddbmm(self.to(out_dtype), batch1.to(out_dtype), batch2.to(out_dtype), beta=beta, alpha=alpha)


# Nested tensors: the operators that have kernels of their own, made of others, and the dispatch key of each


def _nested_padded(self, padding, output_size=None):
    parts = self.unbind()
    size = [max(sizes) for sizes in zip(*(p.shape for p in parts))] if output_size is None else list(output_size)[1:]
    padded = parts[0].new_full((len(parts), *size), padding)
    for part, to in zip(parts, padded):
        to[tuple(map(slice, part.shape))] = part
    return padded


def _nested_bmm(self, mat2):
    return aten._nested_tensor_from_tensor_list([a @ b for a, b in zip(self.unbind(), mat2.unbind())])


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    if fuse_transform_0213:
        padded = padded.transpose(1, 2).flatten(2)
    shapes = cpu_nested_shape_example.tolist()
    return aten._nested_tensor_from_tensor_list([p[tuple(map(slice, shape))] for p, shape in zip(padded, shapes)])


NESTED = {
    "aten::to_padded_tensor": ("NestedTensorCUDA", _nested_padded),
    "aten::bmm": ("NestedTensorCUDA", _nested_bmm),
    "aten::_nested_from_padded": ("CUDA", _nested_from_padded),
}


def _into(operator):
    """The out= variant of an operator."""

    def call(*args, out, **kwargs):
        result = operator(*args, **kwargs)
        return (out if out.shape == result.shape else out.resize_(result.shape)).copy_(result)

    return call


def _no(*args, **kwargs):
    return False


OPERATORS = {
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
    "aten::_scaled_dot_product_flash_attention": _flash_attention,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_attention_backward,
    "aten::_scaled_dot_product_efficient_attention": _efficient_attention,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_attention_backward,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn_attention,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_attention_backward,
    "aten::native_dropout": _native_dropout,
    "aten::_fused_dropout": _fused_dropout,
    "aten::_masked_scale": _masked_scale,
    "aten::cudnn_convolution": _cudnn_convolution,
    "aten::cudnn_convolution_transpose": _cudnn_convolution_transpose,
    "aten::cudnn_convolution_relu": _cudnn_convolution_relu,
    "aten::cudnn_convolution_add_relu": _cudnn_convolution_add_relu,
    "aten::_conv_depthwise2d": _depthwise_convolution,
    "aten::conv_depthwise3d": _depthwise_convolution,
    "aten::cudnn_batch_norm": _cudnn_batch_norm,
    "aten::cudnn_batch_norm_backward": _cudnn_batch_norm_backward,
    "aten::batch_norm_stats": _batch_norm_stats,
    "aten::batch_norm_gather_stats": _batch_norm_gather_stats,
    "aten::batch_norm_gather_stats_with_counts": _batch_norm_gather_stats_with_counts,
    "aten::batch_norm_elemt": _batch_norm_elemt,
    "aten::batch_norm_backward_reduce": _batch_norm_backward_reduce,
    "aten::batch_norm_backward_elemt": _batch_norm_backward_elemt,
    "aten::_fused_rms_norm_backward": _rms_norm_backward,
    "aten::native_layer_norm": _layer_norm,
    "aten::native_layer_norm_backward": _layer_norm_backward,
    "aten::embedding_dense_backward": _embedding_backward,
    "aten::_index_put_impl_": _index_put,
    "aten::histc": _histc,
    "aten::histc.out": _into(_histc),
    "aten::_softmax": _softmax,
    "aten::_softmax.out": _into(_softmax),
    "aten::_softmax_backward_data": _softmax_backward,
    "aten::_log_softmax": _log_softmax,
    "aten::_log_softmax.out": _into(_log_softmax),
    "aten::_log_softmax_backward_data": _log_softmax_backward,
    "aten::prod": _prod,
    "aten::prod.dim_int": _prod,
    "aten::mm.dtype": _mm_dtype,
    "aten::bmm.dtype": _bmm_dtype,
    "aten::addmm.dtype": _addmm_dtype,
    "aten::baddbmm.dtype": _baddbmm_dtype,
    "aten::mm.dtype_out": _into(_mm_dtype),
    "aten::bmm.dtype_out": _into(_bmm_dtype),
    "aten::addmm.dtype_out": _into(_addmm_dtype),
    "aten::baddbmm.dtype_out": _into(_baddbmm_dtype),
    "aten::_conv_depthwise2d.out": _into(_depthwise_convolution),
    "aten::cudnn_convolution.out": _into(_cudnn_convolution),
    "aten::_use_cudnn_ctc_loss": _no,
    "aten::_use_cudnn_ctc_loss.Tensor": _no,
    "aten::_use_miopen_ctc_loss": _no,
    "aten::_use_miopen_ctc_loss.Tensor": _no,
}

SEEDED = frozenset(
    (
        "aten::native_dropout",
        "aten::_scaled_dot_product_flash_attention",
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
    )
)


# Elements that indices choose
#
# Each function takes the arguments of an operator as CPU tensors. It gives, for each argument of which only a part is touched,
# the offsets of pieces from its first element and the shape and strides of a piece, in elements; nothing where all is touched.
# masked_fill_ and masked_scatter_ have no function: their kernels store every element, those that are not masked as they were.


def _dimension(tensor, dim):
    return dim if dim >= 0 else dim + tensor.dim()


def _one_piece(tensor, shape):
    """The leading part of a tensor that has a shape."""
    return torch.zeros(1, dtype=torch.int64), tuple(shape), tensor.stride()


def _along(tensor, dim, index):
    """The elements that gather and scatter take: those of index's own places, but for one dimension."""
    if tensor.dim() == 0 or index.dim() != tensor.dim():
        return None
    dim = _dimension(tensor, dim)
    offsets = index.long() * tensor.stride(dim)
    for d in range(tensor.dim()):
        if d != dim:
            shape = [-1 if i == d else 1 for i in range(tensor.dim())]
            offsets = offsets + (torch.arange(index.size(d)) * tensor.stride(d)).view(shape)
    return offsets, (), ()


def _slices(tensor, dim, index):
    """Whole slices of one dimension."""
    if tensor.dim() == 0:
        return None
    dim = _dimension(tensor, dim)
    shape, stride = list(tensor.shape), list(tensor.stride())
    step = stride.pop(dim)
    del shape[dim]
    return index.long() * step, tuple(shape), tuple(stride)


def _wrapped(index, n):
    index = index.long()
    return torch.where(index < 0, index + n, index)


def _indexed(tensor, indices):
    """What tensor[indices] names: a Boolean index stands for as many indices as it has dimensions, None for a whole dimension."""
    shape, stride, offsets, at = [], [], torch.zeros((), dtype=torch.int64), 0
    if any(i is not None and i.dim() == 0 and i.dtype in (torch.bool, torch.uint8) for i in indices):
        return None
    for index in indices:
        if index is None:
            shape.append(tensor.size(at))
            stride.append(tensor.stride(at))
            at += 1
            continue
        for each in index.nonzero(as_tuple=True) if index.dtype in (torch.bool, torch.uint8) else (index,):
            offsets = offsets + _wrapped(each, tensor.size(at)) * tensor.stride(at)
            at += 1
    return offsets, (*shape, *tensor.shape[at:]), (*stride, *tensor.stride()[at:])


def _counted(tensor, index):
    """The elements of a tensor by their numbers."""
    index, offsets = _wrapped(index, tensor.numel()), torch.zeros((), dtype=torch.int64)
    for n, step in zip(reversed(tensor.shape), reversed(tensor.stride())):
        offsets = offsets + index % max(n, 1) * step
        index = index // max(n, 1)
    return offsets, (), ()


def _touched_gather(self, dim, index, **_):
    return {"self": _along(self, dim, index)}


def _touched_scatter(self, dim, index, src=None, *_, **__):
    touched = {"self": _along(self, dim, index)}
    if isinstance(src, torch.Tensor) and src.dim() == index.dim():
        touched["src"] = _one_piece(src, index.shape)
    return touched


def _touched_slices(self, dim, index, *_, **__):
    return {"self": _slices(self, dim, index)}


def _touched_index(self, indices, **_):
    return {"self": _indexed(self, indices)}


def _touched_index_put(self, indices, values, accumulate=False, unsafe=False):
    given = [i for i in indices if i is not None]
    if not accumulate and values.numel() == 1 and len(given) == 1 and given[0].dtype in (torch.bool, torch.uint8):
        return {}  # which masked_fill_ does
    return {"self": _indexed(self, indices)}


def _touched_take(self, index, *_, **__):
    return {"self": _counted(self, index)}


def _touched_masked_select(self, mask, **_):
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    if not shape:
        return {}
    return {"self": _indexed(self.expand(shape), [mask.expand(shape)])}


def _touched_embedding_bag(weight, indices, *others, padding_idx=-1, **_):
    padding = others[-1] if len(others) == 7 else padding_idx
    return {"weight": _slices(weight, 0, indices[indices != padding])}


def _touched_renorm(self, indices, *_):
    return {"self": _slices(self, 0, indices)}


TOUCHED = {
    "aten::gather": _touched_gather,
    "aten::gather.out": _touched_gather,
    "aten::scatter_.src": _touched_scatter,
    "aten::scatter_.value": _touched_scatter,
    "aten::scatter_.reduce": _touched_scatter,
    "aten::scatter_.value_reduce": _touched_scatter,
    "aten::scatter_add_": _touched_scatter,
    "aten::scatter_reduce_.two": _touched_scatter,
    "aten::index_select": _touched_slices,
    "aten::index_select.out": _touched_slices,
    "aten::index_add_": _touched_slices,
    "aten::index_copy_": _touched_slices,
    "aten::index_fill_.int_Scalar": _touched_slices,
    "aten::index_fill_.int_Tensor": _touched_slices,
    "aten::index_reduce_": _touched_slices,
    "aten::index.Tensor": _touched_index,
    "aten::index.Tensor_out": _touched_index,
    "aten::_index_put_impl_": _touched_index_put,
    "aten::take": _touched_take,
    "aten::take.out": _touched_take,
    "aten::put_": _touched_take,
    "aten::masked_select": _touched_masked_select,
    "aten::masked_select.out": _touched_masked_select,
    "aten::_embedding_bag": _touched_embedding_bag,
    "aten::_embedding_bag_forward_only": _touched_embedding_bag,
    "aten::embedding_renorm_": _touched_renorm,
}


def runs(offsets, width):
    """The runs of bytes that pieces of width bytes at offsets make together, as (begins, ends): sorted, with gaps between them."""
    begins = offsets.flatten().unique()
    if begins.numel() == 0:
        return begins, begins
    parted = begins[1:] - begins[:-1] > width
    edge = torch.ones(1, dtype=torch.bool)
    return begins[torch.cat((edge, parted))], begins[torch.cat((parted, edge))] + width
