"""A check that the installation works."""

__all__ = ["run_check"]


def _multiplication_is_right():
    """Products of small whole numbers, forward and backward: exact in float32."""
    from morel import ops, tensor
    from morel.common import dtype as mstype

    a = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], mstype.float32)
    b = tensor([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], mstype.float32)
    product = ops.matmul(a, b)
    if product.asnumpy().tolist() != [[2.0, 6.0], [6.5, 12.0]]:
        return False
    gradient = ops.grad(lambda x: (ops.matmul(x, b) * ops.matmul(x, b)).sum())(a)
    return gradient.asnumpy().tolist() == [[-8.0, 26.0, 12.0], [-11.0, 54.5, 24.0]]


def run_check():
    """Prints the version and whether a computation on the CPU is right.

    Raises:
        RuntimeError: the result of the computation is wrong.

    Example:
        >>> import morel
        >>> morel.run_check()
        Morel version:  0.1.0
        The result of multiplication calculation is correct, Morel has been installed on platform [CPU] successfully!
    """
    import morel

    print(f"Morel version:  {morel.__version__}")
    if not _multiplication_is_right():
        raise RuntimeError(
            "The result of the multiplication is wrong: the installation does not work. Please report it."
        )
    print(
        "The result of multiplication calculation is correct, Morel has been installed on platform [CPU] successfully!"
    )
