"""Cases that are computed by MindSpore 2.8 (make_nn_reference.py) and compared with Morel (test_nn_reference.py).

Each case is an expression over `nn` (and `mint`) and its inputs. Parameters get values from the case's own generator, so
both frameworks compute the same thing.
"""

import zlib

import numpy as np


def generator(name):
    """A generator that depends on the case alone."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def normal(*shape):
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


def unit(*shape):
    return lambda rng: (0.05 + 0.9 * rng.random_sample(shape)).astype(np.float32)


def distributions(*shape):
    def draw(rng):
        values = 0.1 + rng.random_sample(shape)
        return (values / values.sum(-1, keepdims=True)).astype(np.float32)

    return draw


def classes(count, *shape):
    return lambda rng: rng.randint(0, count, shape).astype(np.int32)


def signs(*shape):
    return lambda rng: np.where(rng.random_sample(shape) < 0.5, -1, 1).astype(np.float32)


def step(number):
    return lambda rng: np.array(number, np.int32)


IMAGE, LINE, ROWS, VOLUME = normal(2, 4, 6, 6), normal(2, 4, 8), normal(3, 4), normal(1, 4, 3, 4, 4)
SMALL = normal(2, 4, 3, 4)

LAYERS = [
    ("nn.Dense(4,5)", ROWS),
    ("nn.Dense(8,5,activation='relu')", LINE),
    ("nn.BiDense(4,3,5)", ROWS, normal(3, 3)),
    ("nn.Conv2d(4,6,3)", IMAGE),
    ("nn.Conv2d(4,6,3,2)", IMAGE),
    ("nn.Conv2d(4,6,4)", IMAGE),
    ("nn.Conv2d(4,6,(3,2),2,pad_mode='pad',padding=(1,2,0,1),has_bias=True)", IMAGE),
    ("nn.Conv2d(4,8,3,group=2,dilation=2)", IMAGE),
    ("nn.Conv2d(4,4,3,group=4,has_bias=True)", IMAGE),
    ("nn.Conv2d(4,6,3,pad_mode='valid',has_bias=True)", IMAGE),
    ("nn.Conv1d(4,6,3,2)", LINE),
    ("nn.Conv1d(4,6,3,pad_mode='pad',padding=2,has_bias=True)", LINE),
    ("nn.Conv3d(4,6,3,2)", VOLUME),
    ("nn.Conv3d(4,6,2,pad_mode='pad',padding=1,has_bias=True)", VOLUME),
    ("nn.Conv3d(4,6,3,group=2,pad_mode='valid')", VOLUME),
    ("nn.Conv2dTranspose(4,6,3)", IMAGE),
    ("nn.Conv2dTranspose(4,6,3,2)", IMAGE),
    ("nn.Conv2dTranspose(4,6,4,2)", IMAGE),
    ("nn.Conv2dTranspose(4,6,2,3)", IMAGE),
    ("nn.Conv2dTranspose(4,6,2,3,pad_mode='valid')", IMAGE),
    ("nn.Conv2dTranspose(4,6,4,1)", IMAGE),
    ("nn.Conv2dTranspose(4,6,3,2,pad_mode='pad',padding=1,output_padding=1,has_bias=True)", IMAGE),
    ("nn.Conv2dTranspose(4,8,3,2,group=2)", IMAGE),
    ("nn.Conv1dTranspose(4,6,3,2)", LINE),
    ("nn.Conv3dTranspose(4,6,3,1)", VOLUME),
    ("nn.Conv3dTranspose(4,6,3,2)", VOLUME),
    ("nn.Embedding(10,4)", classes(10, 2, 3)),
    ("nn.Embedding(10,4,use_one_hot=True)", classes(10, 2, 3)),
    ("nn.LayerNorm((4,))", SMALL),
    ("nn.LayerNorm((3,4),2,2)", SMALL),
    ("nn.LayerNorm((4,),2,3)", SMALL),
    ("nn.GroupNorm(2,4)", IMAGE),
    ("nn.BatchNorm2d(4)", IMAGE),
    ("nn.BatchNorm2d(4).set_train()", IMAGE),
    ("nn.BatchNorm1d(4).set_train()", ROWS),
    ("nn.BatchNorm3d(4).set_train()", VOLUME),
    ("nn.BatchNorm2d(4,momentum=0.7,use_batch_statistics=True)", IMAGE),
    ("nn.BatchNorm2d(4,use_batch_statistics=False).set_train()", IMAGE),
    ("nn.Flatten()", IMAGE),
    ("nn.Flatten(0,1)", IMAGE),
    ("nn.Unflatten(1,(2,2))", IMAGE),
    ("nn.MaxPool2d(3,2)", IMAGE),
    ("nn.MaxPool2d(3,2,pad_mode='same')", IMAGE),
    ("nn.MaxPool2d(3,3,pad_mode='same')", IMAGE),
    ("nn.MaxPool2d((3,2),2,pad_mode='pad',padding=1)", IMAGE),
    ("nn.MaxPool2d(3,2,pad_mode='pad',padding=1,dilation=2,ceil_mode=True)", IMAGE),
    ("nn.MaxPool2d(3,2,pad_mode='pad',return_indices=True)", IMAGE),
    ("nn.MaxPool2d(2,2)", normal(4, 6, 6)),
    ("nn.MaxPool1d(3,2)", LINE),
    ("nn.MaxPool1d(3,2,pad_mode='same')", LINE),
    ("nn.MaxPool1d(3,2,pad_mode='pad',padding=1,return_indices=True)", LINE),
    ("nn.MaxPool3d(2,2)", VOLUME),
    ("nn.MaxPool3d(3,2,pad_mode='same')", VOLUME),
    ("nn.AvgPool2d(3,2)", IMAGE),
    ("nn.AvgPool2d(3,2,pad_mode='same')", IMAGE),
    ("nn.AvgPool2d(2,3,pad_mode='same')", IMAGE),
    ("nn.AvgPool2d(3,2,pad_mode='pad',padding=1)", IMAGE),
    ("nn.AvgPool2d(3,2,pad_mode='pad',padding=1,count_include_pad=False,ceil_mode=True)", IMAGE),
    ("nn.AvgPool2d(2,2,divisor_override=3)", IMAGE),
    ("nn.AvgPool1d(3,2)", LINE),
    ("nn.AvgPool1d(3,2,pad_mode='same')", LINE),
    ("nn.AvgPool1d(3,2,pad_mode='pad',padding=1)", LINE),
    ("nn.AvgPool3d(2,2)", VOLUME),
    ("nn.AvgPool3d(2,2,pad_mode='pad',padding=1)", VOLUME),
    ("nn.AdaptiveAvgPool2d((3,None))", IMAGE),
    ("nn.AdaptiveAvgPool2d(3)", IMAGE),
    ("nn.AdaptiveAvgPool1d(2)", LINE),
    ("nn.AdaptiveMaxPool2d(3)", IMAGE),
    ("nn.AdaptiveMaxPool2d(2,True)", IMAGE),
    ("nn.AdaptiveMaxPool1d(2)", LINE),
    ("nn.AdaptiveAvgPool3d((2,3,None))", VOLUME),
    ("nn.LPPool2d(2,3,2)", unit(2, 4, 6, 6)),
    ("nn.LPPool1d(3.0,2)", unit(2, 4, 8)),
    *(
        (f"nn.{name}()", SMALL)
        for name in (
            "ReLU",
            "ReLU6",
            "GELU",
            "FastGelu",
            "SiLU",
            "Sigmoid",
            "Tanh",
            "Softmax",
            "Softmax2d",
            "Softmin",
            "LogSoftmax",
            "LeakyReLU",
            "ELU",
            "SeLU",
            "CELU",
            "HSwish",
            "HSigmoid",
            "HShrink",
            "SoftShrink",
            "Softsign",
            "LogSigmoid",
            "Hardtanh",
            "Mish",
            "Tanhshrink",
            "GLU",
            "LRN",
            "PReLU",
            "Identity",
        )
    ),
    ("nn.GELU(False)", SMALL),
    ("nn.Threshold(0.1,2)", SMALL),
    ("nn.PReLU(4,[0.1,0.2,0.3,0.4])", SMALL),
    ("nn.CELU(2.0)", SMALL),
    ("nn.Softmax(1)", SMALL),
    ("nn.GLU(1)", SMALL),
    ("nn.LRN(2,2.0,0.5,0.7)", SMALL),
    ("nn.Pad(((1,1),(0,2)))", ROWS),
    ("nn.Pad(((1,1),(0,2)),'REFLECT')", ROWS),
    ("nn.Pad(((1,1),(0,2)),'SYMMETRIC')", ROWS),
    ("nn.ConstantPad2d((1,2,0,1),0.5)", IMAGE),
    ("nn.ReflectionPad1d(2)", LINE),
    ("nn.ReflectionPad2d((1,2,3,0))", IMAGE),
    ("nn.ReplicationPad2d(1)", IMAGE),
    ("nn.ZeroPad2d(1)", IMAGE),
    ("nn.ReplicationPad3d(1)", VOLUME),
    ("nn.Norm(1)", IMAGE),
    ("nn.Norm()", IMAGE),
    ("nn.OneHot(depth=5)", classes(5, 3)),
    ("nn.Tril()", ROWS),
    ("nn.Triu()", ROWS),
    ("nn.Moments(1)", IMAGE),
    ("nn.Moments((1,2),True)", IMAGE),
    ("nn.ReduceLogSumExp(1)", IMAGE),
    ("nn.PixelShuffle(2)", IMAGE),
    ("nn.PixelUnshuffle(2)", IMAGE),
    ("nn.ChannelShuffle(2)", IMAGE),
    ("nn.L1Regularizer(0.1)", ROWS),
    ("nn.MatMul(False,True)", ROWS, normal(5, 4)),
    ("nn.MultiheadAttention(8,2)", normal(5, 2, 8), 0, 0),
    (
        "nn.MultiheadAttention(8,2,kdim=6,vdim=4,add_bias_kv=True,add_zero_attn=True)",
        normal(5, 2, 8),
        normal(7, 2, 6),
        normal(7, 2, 4),
    ),
    ("nn.MultiheadAttention(8,2,batch_first=True)", normal(2, 5, 8), normal(2, 7, 8), normal(2, 7, 8)),
    ("nn.TransformerEncoderLayer(8,2,16)", normal(5, 2, 8)),
    ("nn.TransformerEncoderLayer(8,2,16,activation='gelu',norm_first=True,batch_first=True)", normal(2, 5, 8)),
    ("nn.TransformerDecoderLayer(8,2,16)", normal(5, 2, 8), normal(7, 2, 8)),
    ("nn.TransformerDecoderLayer(8,2,16,norm_first=True)", normal(5, 2, 8), normal(7, 2, 8)),
    ("nn.Transformer(8,2,1,2,16)", normal(5, 2, 8), normal(3, 2, 8)),
    ("nn.SequentialCell(nn.Dense(4,6),nn.Tanh(),nn.Dense(6,2))", ROWS),
    ("nn.Conv2dBnAct(4,6,3,has_bn=True,activation='relu').set_train()", IMAGE),
    ("nn.DenseBnAct(4,6,has_bn=True,activation='sigmoid').set_train()", ROWS),
]

LOSSES = []
for reduction in ("mean", "sum", "none"):
    option = f"reduction='{reduction}'"
    LOSSES += [
        (f"nn.CrossEntropyLoss({option})", ROWS, classes(4, 3)),
        (f"nn.CrossEntropyLoss({option},label_smoothing=0.1,ignore_index=2)", normal(6, 4), classes(4, 6)),
        (f"nn.CrossEntropyLoss({option})", ROWS, unit(3, 4)),
        (f"nn.CrossEntropyLoss({option})", IMAGE, classes(4, 2, 6, 6)),
        (f"nn.SoftmaxCrossEntropyWithLogits(True,{option})", ROWS, classes(4, 3)),
        (f"nn.SoftmaxCrossEntropyWithLogits(False,{option})", ROWS, distributions(3, 4)),
        (f"nn.NLLLoss({option})", ROWS, classes(4, 3)),
        *(
            (f"nn.{name}({option})", ROWS, unit(3, 4))
            for name in ("MSELoss", "L1Loss", "MAELoss", "BCEWithLogitsLoss", "KLDivLoss")
        ),
        (f"nn.SmoothL1Loss(0.7,{option})", ROWS, unit(3, 4)),
        (f"nn.HuberLoss({option},delta=0.7)", ROWS, unit(3, 4)),
        (f"nn.BCELoss({option})", unit(3, 4), unit(3, 4)),
        (f"nn.CosineEmbeddingLoss(0.1,{option})", ROWS, normal(3, 4), signs(3)),
        (f"nn.HingeEmbeddingLoss(1.0,{option})", ROWS, signs(3, 4)),
        (f"nn.MarginRankingLoss(0.1,{option})", normal(3), normal(3), signs(3)),
        (f"nn.GaussianNLLLoss({option},full=True)", ROWS, normal(3, 4), unit(3, 4)),
        (f"nn.PoissonNLLLoss({option},full=True)", ROWS, unit(3, 4)),
        (f"nn.PoissonNLLLoss(log_input=False,{option})", unit(3, 4), unit(3, 4)),
        (f"nn.MultiLabelSoftMarginLoss({option})", ROWS, unit(3, 4)),
        (f"nn.TripletMarginWithDistanceLoss({option})", ROWS, normal(3, 4), normal(3, 4)),
        (f"nn.FocalLoss({option})", ROWS, classes(4, 3, 1)),
        (f"nn.FocalLoss({option})", ROWS, unit(3, 4)),
    ]
LOSSES += [
    ("nn.KLDivLoss('batchmean')", ROWS, unit(3, 4)),
    ("nn.RMSELoss()", ROWS, unit(3, 4)),
    ("nn.DiceLoss()", ROWS, unit(3, 4)),
    ("nn.MultiClassDiceLoss()", ROWS, unit(3, 4)),
]

SCHEDULES = [
    (f"nn.{expression}", step(number))
    for expression in (
        "ExponentialDecayLR(0.1,0.9,4)",
        "ExponentialDecayLR(0.1,0.9,4,True)",
        "NaturalExpDecayLR(0.1,0.9,4)",
        "NaturalExpDecayLR(0.1,0.9,4,True)",
        "InverseDecayLR(0.1,0.9,4)",
        "InverseDecayLR(0.1,0.9,4,True)",
        "CosineDecayLR(0.01,0.1,10)",
        "PolynomialDecayLR(0.1,0.01,4,0.5)",
        "PolynomialDecayLR(0.1,0.01,4,0.5,True)",
        "WarmUpLR(0.1,4)",
    )
    for number in (0, 3, 7, 40)
]

LISTS = [
    "nn.piecewise_constant_lr([2,5,10],[0.1,0.05,0.01])",
    "nn.exponential_decay_lr(0.1,0.9,6,2,1)",
    "nn.exponential_decay_lr(0.1,0.9,6,1,2,True)",
    "nn.natural_exp_decay_lr(0.1,0.9,6,2,2,True)",
    "nn.natural_exp_decay_lr(0.1,0.9,6,2,2)",
    "nn.inverse_decay_lr(0.1,0.5,6,1,1,True)",
    "nn.inverse_decay_lr(0.1,0.5,6,1,2)",
    "nn.cosine_decay_lr(0.01,0.1,6,2,2)",
    "nn.polynomial_decay_lr(0.1,0.01,6,2,2,0.5)",
    "nn.polynomial_decay_lr(0.1,0.01,8,1,2,0.5,True)",
    "nn.warmup_lr(0.1,6,2,2)",
]

# `net` is a Dense(3, 4) whose gradients are given; the parameters after three steps are compared.
OPTIMIZERS = [
    "nn.SGD(params,0.1)",
    "nn.SGD(params,0.1,0.9)",
    "nn.SGD(params,0.1,0.9,0.2,weight_decay=0.1)",
    "nn.SGD(params,0.1,0.9,nesterov=True,loss_scale=2.0)",
    "nn.Momentum(params,0.1,0.9)",
    "nn.Momentum(params,0.1,0.9,0.1,2.0)",
    "nn.Adam(params,0.1)",
    "nn.Adam(params,0.1,weight_decay=0.1)",
    "nn.Adam(params,0.1,use_nesterov=True,loss_scale=4.0)",
    "nn.Adam(params,0.1,use_amsgrad=True)",
    "nn.Adam(params,[0.1,0.05,0.2])",
    "nn.Adam(params,nn.WarmUpLR(0.1,2))",
    "nn.Adam([{'params':[net.weight],'lr':0.2,'weight_decay':0.1},{'params':[net.bias]}],0.1)",
    "nn.Adam([{'params':[net.bias],'lr':nn.WarmUpLR(0.1,2)},{'params':[net.weight]},"
    "{'order_params':[net.weight,net.bias]}],0.1,weight_decay=0.05)",
    "nn.AdamWeightDecay(params,0.1,weight_decay=0.1)",
    "nn.Lamb(params,0.1,weight_decay=0.1)",
    "nn.RMSProp(params,0.1)",
    "nn.RMSProp(params,0.1,0.8,0.9,1e-3,weight_decay=0.1)",
    "nn.RMSProp(params,0.1,momentum=0.5,centered=True)",
    "nn.Adagrad(params,learning_rate=0.1,weight_decay=0.1)",
    "nn.Adadelta(params,1.0,weight_decay=0.1)",
    "nn.AdaMax(params,0.1)",
    "nn.ASGD(params,0.1)",
    "nn.Rprop(params,0.1)",
    "nn.FTRL(params,learning_rate=0.1,l2=0.01)",
    "nn.FTRL(params,0.2,0.1,-0.7)",
    "nn.ProximalAdagrad(params,learning_rate=0.1,l1=0.01,l2=0.01)",
    "nn.LazyAdam(params,0.1)",
]

# Constructors whose printed form, parameter names, shapes, dtypes and trainability are compared.
STRUCTURES = [case[0] for case in LAYERS if ".set_train" not in case[0]] + [
    "nn.Dense(3,4,has_bias=False,activation=nn.LeakyReLU(0.1))",
    "nn.EmbeddingLookup(30,4)",
    "nn.SyncBatchNorm(4)",
    "nn.BatchNorm2d(4,affine=False)",
    "nn.InstanceNorm1d(4)",
    "nn.InstanceNorm2d(4)",
    "nn.InstanceNorm3d(4)",
    "nn.Dropout(p=0.3)",
    "nn.Dropout(0.3)",
    "nn.Dropout1d(0.3)",
    "nn.Dropout2d(0.3)",
    "nn.Dropout3d(0.3)",
    "nn.DropoutExt(0.3)",
    "nn.SequentialCell(nn.Dense(3,4),nn.ReLU(),nn.BatchNorm1d(4))",
    "nn.SequentialCell(OrderedDict([('fc',nn.Dense(3,4)),('act',nn.ReLU())]))",
    "nn.CellList([nn.Dense(3,4),nn.ReLU()])",
    "nn.CellDict({'a':nn.Dense(3,4),'b':nn.ReLU()})",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(16,4,32),2)",
    "nn.TransformerDecoder(nn.TransformerDecoderLayer(16,4,32),2,nn.LayerNorm((16,)))",
    "nn.WithLossCell(nn.Dense(3,4),nn.MSELoss())",
    "nn.WithEvalCell(nn.Dense(3,4),nn.MSELoss())",
    "nn.ForwardValueAndGrad(nn.Dense(3,4))",
    "nn.TrainOneStepCell(nn.WithLossCell(nn.Dense(3,4),nn.MSELoss()),"
    "nn.Momentum(nn.Dense(3,4).trainable_params(),0.1,0.9))",
    *(text.replace("params,", "nn.Dense(3,4).trainable_params(),") for text in OPTIMIZERS if "net." not in text),
    "nn.Adam([{'params':nn.Dense(3,4).trainable_params(),'lr':0.2,'weight_decay':0.1},"
    "{'params':nn.LayerNorm((2,)).trainable_params()}])",
    *(
        "mint.nn." + text
        for text in (
            "Linear(30,40)",
            "Linear(30,40,bias=False)",
            "Conv1d(3,4,3)",
            "Conv2d(3,4,3)",
            "Conv3d(3,4,3)",
            "Conv2d(3,4,3,padding='same',padding_mode='reflect')",
            "ConvTranspose2d(3,4,3)",
            "LayerNorm(4)",
            "LayerNorm((3,4),bias=False)",
            "GroupNorm(2,4)",
            "BatchNorm1d(4)",
            "BatchNorm2d(4)",
            "BatchNorm3d(4)",
            "BatchNorm2d(4,affine=False,track_running_stats=False)",
            "Embedding(30,4,padding_idx=1)",
            "Dropout(0.3)",
            "Dropout2d(0.3)",
            "ReLU()",
            "ReLU6()",
            "GELU()",
            "SiLU()",
            "ELU()",
            "SELU()",
            "Mish()",
            "PReLU()",
            "Softmax(1)",
            "LogSoftmax(1)",
            "Softshrink()",
            "Hardshrink()",
            "Hardtanh()",
            "Tanh()",
            "Sigmoid()",
            "LogSigmoid()",
            "GLU()",
            "Threshold(0.1,2.0)",
            "Identity()",
            "Flatten()",
            "MaxPool2d(2)",
            "AvgPool1d(2)",
            "AvgPool2d(2)",
            "AdaptiveAvgPool1d(2)",
            "AdaptiveAvgPool2d(2)",
            "CrossEntropyLoss()",
            "MSELoss()",
            "L1Loss()",
            "SmoothL1Loss()",
            "BCEWithLogitsLoss()",
            "NLLLoss()",
            "KLDivLoss()",
            "CosineEmbeddingLoss()",
            "PixelShuffle(2)",
            "Upsample(scale_factor=2.0)",
            "ZeroPad2d(1)",
            "ReflectionPad2d(1)",
            "ConstantPad2d(1,2.0)",
            "Unfold(2)",
            "Fold((4,4),2)",
        )
    ),
    "mint.optim.Adam(nn.Dense(3,4).trainable_params())",
    "mint.optim.AdamW(nn.Dense(3,4).trainable_params())",
]


# MindSpore's CPU device computes another gradient than that of the function.
WRONG_GRADIENTS = ["nn.SeLU()"]


def label(case):
    """A name for the case that no other has."""
    arrays = inputs_of(case)
    parts = [str(array) if array.ndim == 0 else str(array.dtype) + str(array.shape) for array in arrays]
    return " ".join([case[0], *parts])


def inputs_of(case):
    """The case's inputs as arrays; an int repeats an earlier one (the same object)."""
    rng = generator("inputs " + case[0])
    arrays = []
    for entry in case[1:]:
        arrays.append(arrays[entry] if isinstance(entry, int) else entry(rng))
    return arrays


def values_for(name, parameters):
    """New values for parameters, given as (array of the present values, trainable)."""
    rng = generator("parameters " + name)
    return [
        (0.1 * rng.standard_normal(array.shape) + array).astype(array.dtype) if trainable else array
        for array, trainable in parameters
    ]


def fixed_values(name, shapes):
    """Values for parameters whose first values are random."""
    rng = generator("parameters " + name)
    return [(0.3 * rng.standard_normal(shape)).astype(np.float32) for shape in shapes]
