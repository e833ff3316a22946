"""Optimizers: formulas that MindSpore's CPU device lacks or has wrong, groups, learning rates, decay, states, errors."""

import copy

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, mint, nn

SHAPES = [(3, 4), (5,)]


def make_params(seed=0, dtype=np.float32):
    rng = np.random.RandomState(seed)
    return [Parameter(Tensor(rng.randn(*shape).astype(dtype)), name=f"p{index}") for index, shape in enumerate(SHAPES)]


def make_gradients(steps, seed=1):
    rng = np.random.RandomState(seed)
    return [[rng.randn(*shape).astype(np.float32) for shape in SHAPES] for _ in range(steps)]


def run(optimizer, steps=3):
    for gradients in make_gradients(steps):
        optimizer(tuple(Tensor(gradient) for gradient in gradients))
    return [param.asnumpy() for param in optimizer.parameters]


def check(optimizer, rule, steps=3):
    """`rule(state, p, g, t)` returns the new float64 parameter; `state` is a dict that lives as long as the parameter."""
    params = [param.asnumpy().astype(np.float64) for param in optimizer.parameters]
    states = [{} for _ in params]
    for number, gradients in enumerate(make_gradients(steps), 1):
        params = [rule(state, p, g.astype(np.float64), number) for state, p, g in zip(states, params, gradients)]
    for found, wanted in zip(run(optimizer, steps), params):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def adam_moments(state, g, beta1=0.9, beta2=0.999):
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    return state["m"], state["v"]


def test_momentum_nesterov():
    def rule(state, p, g, t):
        g = g + 0.1 * p
        state["v"] = 0.9 * state.get("v", 0) + g
        return p - 0.1 * (g + 0.9 * state["v"])

    check(nn.Momentum(make_params(), 0.1, 0.9, weight_decay=0.1, use_nesterov=True), rule)


def test_lamb():
    def rule(state, p, g, t):
        m, v = adam_moments(state, g)
        update = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.1 * p
        return p - 0.1 * np.linalg.norm(p) / np.linalg.norm(update) * update

    check(nn.Lamb(make_params(), 0.1, weight_decay=0.1), rule)


def test_ftrl_with_l1():
    def rule(state, p, g, t):
        n, z = state.get("n", 0.1), state.get("z", 0)
        grown = n + g * g
        z = z + g - (np.sqrt(grown) - np.sqrt(n)) / 0.1 * p
        state.update(n=grown, z=z)
        return np.where(abs(z) > 0.3, (np.sign(z) * 0.3 - z) / (np.sqrt(grown) / 0.1 + 0.02), 0)

    optimizer = nn.FTRL(make_params(), learning_rate=0.1, l1=0.3, l2=0.01)
    check(optimizer, rule)
    assert (optimizer.parameters[0].asnumpy() == 0).any()  # that is what l1 is for


def test_rprop_and_asgd_average():
    def rule(state, p, g, t):
        size, past = state.get("size", np.full(p.shape, 0.1)), state.get("past", 0 * p)
        size = np.clip(size * np.where(g * past > 0, 1.2, np.where(g * past < 0, 0.5, 1)), 1e-6, 50)
        g = np.where(g * past < 0, 0, g)
        state.update(size=size, past=g)
        return p - np.sign(g) * size

    check(nn.Rprop(make_params(), 0.1), rule, steps=5)
    optimizer = nn.ASGD(make_params(), 0.1, t0=1.0)
    found = []
    for gradients in make_gradients(4):
        optimizer(tuple(map(Tensor, gradients)))
        found.append(optimizer.parameters[0].asnumpy().copy())
    # The mean of the iterates from step t0 + 2 on; until then the average is the last iterate.
    np.testing.assert_allclose(optimizer.ax[0].asnumpy(), (found[2] + found[3]) / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_mint_adam(decoupled, amsgrad):
    def rule(state, p, g, t):
        if decoupled:
            p = p * (1 - 0.1 * 0.2)
        else:
            g = g + 0.2 * p
        m, v = adam_moments(state, g, 0.8, 0.9)
        if amsgrad:
            v = state["largest"] = np.maximum(state.get("largest", 0), v)
        return p - 0.1 * m / (1 - 0.8**t) / (np.sqrt(v / (1 - 0.9**t)) + 1e-3)

    kind = mint.optim.AdamW if decoupled else mint.optim.Adam
    check(kind(make_params(), 0.1, (0.8, 0.9), 1e-3, 0.2, amsgrad), rule)


@pytest.mark.parametrize("nesterov", [False, True])
def test_mint_sgd(nesterov):
    dampening = 0.0 if nesterov else 0.3

    def rule(state, p, g, t):
        g = -g + 0.1 * p  # maximize
        state["v"] = g if t == 1 else 0.9 * state["v"] + (1 - dampening) * g
        return p - 0.1 * (g + 0.9 * state["v"] if nesterov else state["v"])

    check(mint.optim.SGD(make_params(), 0.1, 0.9, dampening, 0.1, nesterov, maximize=True), rule)


def test_mint_groups():
    params = make_params()
    optimizer = mint.optim.SGD([{"params": params[:1], "lr": 0.5}, {"params": params[1]}], 0.1)
    before = [param.asnumpy().copy() for param in params]
    after = run(optimizer, 1)
    for old, new, gradient, rate in zip(before, after, make_gradients(1)[0], (0.5, 0.1)):
        np.testing.assert_allclose(new, old - rate * gradient, rtol=1e-5)
    optimizer.param_groups[0]["lr"].set_data(Tensor(0.0))
    kept = after[0].copy()
    assert (run(optimizer, 1)[0] == kept).all()
    with pytest.raises(ValueError, match="more than one"):
        optimizer.add_param_group({"params": params[1]})
    with pytest.raises(ValueError, match="gradients"):
        optimizer((Tensor(1.0),))


def test_groups_rates_and_decay():
    params = make_params()
    groups = [
        {"params": [params[1]], "lr": 0.5, "weight_decay": 0.1},
        {"params": [params[0]]},
        {"order_params": params},
    ]
    optimizer = nn.SGD(groups, 0.2, weight_decay=0.3, loss_scale=4.0)
    assert [param.name for param in optimizer.parameters] == ["p0", "p1"] and "order_params" in groups[2]
    assert [float(rate.asnumpy()) for rate in optimizer.get_lr()] == [pytest.approx(0.2), 0.5]
    assert optimizer.get_lr_parameter(params[1]).name == "learning_rate_group_0"
    assert [rate.name for rate in optimizer.get_lr_parameter(params)] == ["learning_rate", "learning_rate_group_0"]
    before = [param.asnumpy().copy() for param in params]
    after = run(optimizer, 1)
    for old, new, gradient, rate, decay in zip(before, after, make_gradients(1)[0], (0.2, 0.5), (0.3, 0.1)):
        np.testing.assert_allclose(new, old - rate * (gradient / 4 + decay * old), rtol=1e-5, atol=1e-6)


def test_decay_spares_beta_and_gamma():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.LayerNorm((2,)))
    optimizer = nn.SGD(net.trainable_params(), 1.0, weight_decay=0.5)
    before = [param.asnumpy().copy() for param in optimizer.parameters]
    optimizer(tuple(Tensor(np.zeros(param.shape, np.float32)) for param in optimizer.parameters))
    factors = [0.5, 0.5, 1.0, 1.0]
    for param, old, factor in zip(optimizer.parameters, before, factors):
        np.testing.assert_allclose(param.asnumpy(), old * factor, rtol=1e-6)


def test_gradient_centralization():
    weight = Parameter(Tensor(np.zeros((2, 16), np.float32)), name="w")
    optimizer = nn.SGD([{"params": [weight], "grad_centralization": True}], 1.0)
    gradient = np.random.RandomState(0).rand(2, 16).astype(np.float32)
    optimizer((Tensor(gradient),))
    np.testing.assert_allclose(weight.asnumpy(), gradient.mean(1, keepdims=True) - gradient, atol=1e-6)


def test_dynamic_rates_and_decay():
    class Halving(nn.learning_rate_schedule.LearningRateSchedule):
        def construct(self, global_step):
            return 0.5 ** global_step.astype(ms.float32)

    class Decay(nn.Cell):
        def construct(self, global_step):
            return global_step.astype(ms.float32) * 0.5

    param = Parameter(Tensor([0.0]), name="w")
    optimizer = nn.SGD([param], Halving())
    values = []
    for _ in range(3):
        assert optimizer.get_lr().shape == ()
        optimizer((Tensor([1.0]),))
        values.append(float(param.asnumpy()[0]))
    assert values == [-1.0, -1.5, -1.75]

    param = Parameter(Tensor([0.0]), name="w")
    optimizer = nn.Momentum([param], [0.5, 0.25], 0.0)
    for wanted in (-0.5, -0.75, -1.0):  # the last rate stays
        optimizer((Tensor([1.0]),))
        assert float(param.asnumpy()[0]) == wanted
    assert [p.name for p in optimizer.get_parameters()] == [
        "global_step",
        "w",
        "momentum",
        "moments.w",
        "learning_rate",
    ]

    param = Parameter(Tensor([1.0]), name="w")
    optimizer = nn.Momentum([param], 1.0, 0.0, weight_decay=Decay())
    optimizer((Tensor([0.0]),))
    assert param.asnumpy()[0] == 1.0
    optimizer((Tensor([0.0]),))
    assert param.asnumpy()[0] == 0.5

    mixed = nn.Adam([{"params": [param], "lr": [0.1, 0.2]}, {"params": [Parameter(Tensor([1.0]), name="v")]}], 0.3)
    assert [round(float(rate.asnumpy()), 6) for rate in mixed.get_lr()] == [0.1, 0.3]


def test_learning_rate_can_be_set_between_steps():
    param = Parameter(Tensor([0.0]), name="w")
    optimizer = nn.SGD([param], 1.0)
    optimizer((Tensor([1.0]),))
    optimizer.learning_rate.set_data(Tensor(0.5))
    optimizer((Tensor([1.0]),))
    assert float(param.asnumpy()[0]) == -1.5


@pytest.mark.parametrize(
    "make",
    [
        lambda params: nn.Adam(params, 0.1),
        lambda params: nn.SGD(params, 0.1, 0.9, 0.5),
        lambda params: nn.RMSProp(params, 0.1, momentum=0.9),
        lambda params: mint.optim.AdamW(params, 0.1),
    ],
)
def test_saved_state_continues_exactly(make):
    straight = run(make(make_params()), 4)
    first = make(make_params())
    run(first, 0)
    gradients = make_gradients(4)
    for step in gradients[:2]:
        first(tuple(map(Tensor, step)))
    second = make(make_params(seed=5))
    second.load_state_dict(first.state_dict())
    for step in gradients[2:]:
        second(tuple(map(Tensor, step)))
    for found, wanted in zip(second.parameters, straight):
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_parameter_names_never_shadow_attributes():
    params = [Parameter(Tensor([1.0]), name=name) for name in ("eps", "beta1", "momentum", "loss_scale", "moment1")]
    optimizer = nn.Adam(params, 0.1)
    optimizer(tuple(Tensor([1.0]) for _ in params))
    assert optimizer.loss_scale == 1.0 and optimizer.beta1 == 0.9
    assert [param.name for param in copy.deepcopy(optimizer).parameters] == [param.name for param in params]
    for param in params:
        np.testing.assert_allclose(param.asnumpy(), [0.9], rtol=1e-5)


def test_half_parameters_and_float_gradients():
    params = [Parameter(Tensor(np.ones(3), ms.float16), name="w")]
    nn.Momentum(params, 0.5, 0.9)((Tensor(np.ones(3, np.float32)),))
    assert params[0].dtype == ms.float16 and params[0].asnumpy().tolist() == [0.5] * 3


def test_own_optimizer():
    class Sign(nn.Optimizer):
        def construct(self, gradients):
            gradients = self.scale_grad(self.decay_weight(self.gradients_centralization(gradients)))
            rate = self.get_lr()
            self.assignadd(self.global_step, self.global_step_increase_tensor)
            for param, gradient in zip(self.parameters, gradients):
                param.sub_(gradient.sign() * rate)

    params = make_params()
    before = params[0].asnumpy().copy()
    optimizer = Sign(0.5, params, weight_decay=0.1, loss_scale=2.0)
    gradients = make_gradients(1)[0]
    optimizer(tuple(map(Tensor, gradients)))
    np.testing.assert_allclose(params[0].asnumpy(), before - 0.5 * np.sign(gradients[0] / 2 + 0.1 * before), rtol=1e-6)
    assert int(optimizer.global_step.asnumpy()[0]) == 1


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda p: nn.Adam([]), ValueError, "empty"),
        (lambda p: nn.Adam(None), ValueError, "None"),
        (lambda p: nn.Adam([1]), TypeError, "parameters"),
        (lambda p: nn.Adam(3), TypeError, "Iterable"),
        (lambda p: nn.Adam(p, -1.0), ValueError, "learning rate"),
        (lambda p: nn.Adam(p, None), TypeError, "learning_rate"),
        (lambda p: nn.Adam(p, Tensor(np.ones((2, 2)))), ValueError, "dimension"),
        (lambda p: nn.Adam(p, beta1=1.0), ValueError, "beta1"),
        (lambda p: nn.Adam(p, beta2=1), TypeError, "beta2"),
        (lambda p: nn.Adam(p, eps=0.0), ValueError, "eps"),
        (lambda p: nn.Adam(p, weight_decay=-1.0), ValueError, "weight_decay"),
        (lambda p: nn.Adam(p, weight_decay="a"), TypeError, "Weight_decay|weight_decay"),
        (lambda p: nn.Adam(p, loss_scale=0.0), ValueError, "loss_scale"),
        (lambda p: nn.Adam(p, use_nesterov=1), TypeError, "use_nesterov"),
        (lambda p: nn.Adam(p, other=1), KeyError, "other"),
        (lambda p: nn.Momentum(p, 0.1, 1), TypeError, "momentum"),
        (lambda p: nn.Momentum(p, 0.1, -1.0), ValueError, "momentum"),
        (lambda p: nn.SGD(p, nesterov=True), ValueError, "nesterov"),
        (lambda p: nn.Adam([{"params": p, "x": 1}]), KeyError, "x"),
        (lambda p: nn.Adam([{"lr": 1}]), KeyError, "params"),
        (lambda p: nn.Adam([{"params": p}, {"params": p}]), RuntimeError, "p0"),
        (lambda p: nn.Adam([{"params": p}, {"order_params": p[:1]}]), ValueError, "order"),
        (lambda p: nn.Adam([{"params": p, "grad_centralization": 1}]), TypeError, "bool"),
        (lambda p: nn.FTRL(p, learning_rate=[0.1, 0.2]), ValueError, "learning rate"),
        (lambda p: nn.Adam(p)((Tensor(1.0),)), ValueError, "gradients"),
        (lambda p: nn.Adam(p).get_lr_parameter(Parameter(1.0, "x")), ValueError, "x"),
        (lambda p: nn.Adam(p).get_lr_parameter(1), TypeError, "param"),
        (lambda p: nn.ExponentialDecayLR(1, 0.9, 4), TypeError, "learning_rate"),
        (lambda p: nn.CosineDecayLR(0.2, 0.1, 4), ValueError, "max_lr"),
        (lambda p: nn.WarmUpLR(0.1, 0), ValueError, "warmup_steps"),
        (lambda p: nn.piecewise_constant_lr([5, 2], [0.1, 0.1]), ValueError, "milestone"),
        (lambda p: nn.warmup_lr(0.1, 4, 1, 0), ValueError, "warmup_epoch"),
        (lambda p: mint.optim.Adam(p, betas=(1.0, 0.9)), ValueError, "betas"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(make_params())
