"""The update rules, over lists of tensors that share all numbers. `weight_decay` is already free of the loss scale.

Rules with a fused kernel call it once per list; the others are ordinary operators. Nothing is recorded for gradients.
"""

from morel import ops
from morel._core import Tensor
from morel.api import make_operator

_adagrad, _adam, _lamb, _rmsprop, _sgd = (
    make_operator(name, name) for name in ("adagrad_", "adam_", "lamb_", "rmsprop_", "sgd_")
)


def _decayed(gradient, param, weight_decay):
    """The gradient of the loss with the L2 penalty, in the parameter's dtype."""
    if gradient.dtype != param.dtype:
        gradient = gradient.astype(param.dtype)
    return gradient + param * weight_decay if weight_decay else gradient


def _chosen(condition, number, tensor):
    """A number where a condition holds that is a bool or, as the number, a tensor of one element; else the tensor."""
    if not isinstance(condition, Tensor):
        return ops.full_like(tensor, number) if condition else tensor
    number = number.astype(tensor.dtype) if isinstance(number, Tensor) else ops.full_like(tensor, number)
    return ops.where(condition.reshape(()), number.reshape(()) if number.size == 1 else number, tensor)


def momentum(params, gradients, moments, lr, mu, weight_decay, nesterov):
    """v = mu v + g; p -= lr v, or lr (g + mu v)."""
    _sgd(params, gradients, moments, lr, mu, 0.0, weight_decay, nesterov)


def sgd(params, gradients, moments, lr, mu, dampening, weight_decay, nesterov, first):
    """v = g at first, then v = mu v + (1 - dampening) g; p -= lr v, or lr (g + mu v); without mu: p -= lr g."""
    _sgd(params, gradients, moments, lr, mu, dampening, weight_decay, nesterov, first)


def _moving(average, value, beta):
    """average = beta average + (1 - beta) value, in place."""
    average.copy_(average * beta + value * (1.0 - beta))


def adam(params, gradients, first, second, largest, lr, beta1, beta2, eps, weight_decay, power1, power2, nesterov):
    """Kingma and Ba, 2015, end of section 2: p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)."""
    rate = lr * (1.0 - power2) ** 0.5 / (1.0 - power1)
    _adam(params, gradients, first, second, largest or [], beta1, beta2, eps, weight_decay, 1.0, rate, 1.0, nesterov)


def adam_corrected(params, gradients, first, second, largest, lr, beta1, beta2, eps, weight_decay, step, decoupled):
    """Kingma and Ba, 2015, algorithm 1: p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)."""
    l2, keep = (0.0, 1.0 - lr * weight_decay) if decoupled else (weight_decay, 1.0)
    _adam(
        params,
        gradients,
        first,
        second,
        largest or [],
        beta1,
        beta2,
        eps,
        l2,
        keep,
        lr / (1.0 - beta1**step),
        (1.0 - beta2**step) ** -0.5,
    )


def adam_weight_decay(params, gradients, first, second, lr, beta1, beta2, eps, weight_decay):
    """Adam without bias correction and with decoupled decay: p -= lr (m / (sqrt(v) + eps) + weight_decay p)."""
    _adam(params, gradients, first, second, [], beta1, beta2, eps, 0.0, 1.0 - lr * weight_decay, lr, 1.0)


def lamb(params, gradients, first, second, lr, beta1, beta2, eps, weight_decay, step):
    """You et al., 2019, algorithm 2: Adam's step plus decay, scaled to the norm of the parameter."""
    _lamb(params, gradients, first, second, lr, beta1, beta2, eps, weight_decay, step)


def rmsprop(params, gradients, means, squares, moments, lr, decay, mu, eps, weight_decay):
    """s = decay s + (1 - decay) g^2; v = mu v + lr g / sqrt(s - mean^2 + eps); p -= v. `means` None: no mean."""
    centered = means is not None
    _rmsprop(params, gradients, squares, moments, means or [], lr, decay, mu, eps, weight_decay, centered, True, True)


def adagrad(params, gradients, sums, lr, weight_decay, update_sums):
    """s += g^2; p -= lr g / sqrt(s)."""
    _adagrad(params, gradients, sums, lr, 0.0, weight_decay, update_sums)


def adadelta(params, gradients, squares, updates, lr, rho, eps, weight_decay):
    """Zeiler, 2012, algorithm 1: step = sqrt(E[step^2] + eps) / sqrt(E[g^2] + eps) g; p -= lr step."""
    for param, gradient, square, past in zip(params, gradients, squares, updates):
        gradient = _decayed(gradient, param, weight_decay)
        _moving(square, ops.square(gradient), rho)
        step = ops.sqrt(past + eps) / ops.sqrt(square + eps) * gradient
        _moving(past, ops.square(step), rho)
        param.sub_(step * lr)


def adamax(params, gradients, first, largest, lr, beta1, beta2, eps, weight_decay, power1):
    """Kingma and Ba, 2015, algorithm 2: u = max(b2 u, |g|); p -= lr / (1 - b1^t) m / (u + eps)."""
    rate = lr / (1.0 - power1)
    for param, gradient, m, u in zip(params, gradients, first, largest):
        gradient = _decayed(gradient, param, weight_decay)
        _moving(m, gradient, beta1)
        u.copy_(ops.maximum(u * beta2, ops.abs(gradient)))
        param.sub_(m * rate / (u + eps))


def ftrl(params, gradients, sums, linears, lr, l1, l2, power, weight_decay):
    """McMahan et al., Ad Click Prediction, 2013, algorithm 1, with accumulators raised to -power."""
    for param, gradient, total, linear in zip(params, gradients, sums, linears):
        gradient = _decayed(gradient, param, weight_decay)
        grown = total + ops.square(gradient)
        grown_power = grown**-power
        linear.add_(gradient - (grown_power - total**-power) * param / lr)
        total.copy_(grown)
        quadratic = grown_power / lr + 2.0 * l2
        chosen = (ops.sign(linear) * l1 - linear) / quadratic
        param.copy_(ops.where(ops.abs(linear) > l1, chosen, ops.zeros_like(param)))


def proximal_adagrad(params, gradients, sums, lr, l1, l2, weight_decay):
    """s += g^2; x = p - lr g / sqrt(s); p = sign(x) max(|x| - lr' l1, 0) / (1 + lr' l2) with lr' = lr / sqrt(s)."""
    for param, gradient, total in zip(params, gradients, sums):
        gradient = _decayed(gradient, param, weight_decay)
        total.add_(ops.square(gradient))
        rate = lr / ops.sqrt(total)
        moved = param - gradient * rate
        if l1 > 0:
            moved = ops.sign(moved) * ops.relu(ops.abs(moved) - rate * l1)
        param.copy_(moved / (rate * l2 + 1.0))


def rprop(params, gradients, previous, sizes, lr, shrink, grow, smallest, largest, weight_decay, first):
    """Riedmiller and Braun, 1993: step sizes grow while the sign of the gradient stays, and shrink when it changes."""
    for param, gradient, past, size in zip(params, gradients, previous, sizes):
        gradient = _decayed(gradient, param, weight_decay)
        size.copy_(_chosen(first, lr, size))
        agreement = gradient * past
        one = ops.ones_like(param)
        factor = ops.where(agreement > 0, one * grow, ops.where(agreement < 0, one * shrink, one))
        size.copy_(ops.clamp(size * factor, smallest, largest))
        past.copy_(ops.where(agreement < 0, ops.zeros_like(param), gradient))
        param.sub_(ops.sign(past) * size)


def asgd(params, gradients, averages, etas, mus, lr, lambd, alpha, t0, weight_decay, step):
    """Polyak and Juditsky, 1992: p = (1 - lambd eta) p - eta g, and from step t0 on the mean of the iterates."""
    for param, gradient, average, eta, mu in zip(params, gradients, averages, etas, mus):
        gradient = _decayed(gradient, param, weight_decay)
        rate = _chosen(step == 1, lr, eta)
        param.copy_(param * (1.0 - rate * lambd) - gradient * rate)
        average.copy_(ops.where(mu == 1.0, param, average + (param - average) * mu))
        eta.fill_(lr / (1.0 + lambd * lr * step) ** alpha)
        mu.fill_(1.0 / ops.clamp(step - t0, min=1.0) if isinstance(step, Tensor) else 1.0 / max(1.0, step - t0))
