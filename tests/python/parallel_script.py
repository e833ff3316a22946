"""What the processes of test_processes.py run: a training step and collective operations, compared with one process."""

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import comm_func, create_group, get_group_size, get_rank, init
from mindspore.mint import distributed
from mindspore.parallel import Replicate, Shard, distribute_tensor, init_device_mesh, shard_module


def numbers(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def train(mesh):
    """Parameters after three steps of an MLP: data parallel along one axis, tensor parallel along the other."""
    ms.set_seed(2)
    net = nn.SequentialCell(nn.Dense(6, 12), nn.ReLU(), nn.Dense(12, 4))
    x, y = numbers(8, 6), numbers(8, 4, seed=1)
    if mesh:
        plan = {
            "0.weight": [Replicate(), Shard(0)],
            "0.bias": [Replicate(), Shard(0)],
            "2.weight": [Replicate(), Shard(1)],
        }
        shard_module(net, mesh, plan)
        x, y = (distribute_tensor(one, mesh, [Shard(0), Replicate()]) for one in (x, y))
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, net.trainable_params())
    for _ in range(3):
        _, gradients = step(x, y)
        update(gradients)
    return [one.full_tensor() if mesh else one for one in net.get_parameters()]


def check_training():
    wanted = train(None)
    got = train(init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "mp")))
    for one, other in zip(got, wanted):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=2e-5, atol=2e-6)


def check_data_parallel():
    """Every process trains on its rows; the gradients are averaged."""

    def trained(rows):
        ms.set_seed(2)
        net = nn.SequentialCell(nn.Dense(6, 12), nn.ReLU(), nn.Dense(12, 4))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        for _ in range(3):
            step(numbers(8, 6)[rows], numbers(8, 4, seed=1)[rows])
        return net.get_parameters()

    wanted = trained(slice(0, 8))
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    for one, other in zip(trained(slice(2 * get_rank(), 2 * get_rank() + 2)), wanted):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=2e-5, atol=2e-6)


def check_collectives():
    rank, size = get_rank(), get_group_size()
    own = numbers(4, 3, seed=rank).asnumpy()
    every = [numbers(4, 3, seed=i).asnumpy() for i in range(size)]
    total = sum_in_order(every)

    def same(got, wanted):
        np.testing.assert_array_equal(got.asnumpy(), wanted)

    same(comm_func.all_reduce(Tensor(own))[0], total)
    same(comm_func.all_reduce(Tensor(own), "max")[0], np.max(every, 0))
    same(comm_func.all_gather_into_tensor(Tensor(own))[0], np.concatenate(every))
    same(comm_func.reduce_scatter_tensor(Tensor(own))[0], total[rank : rank + 1])
    same(comm_func.broadcast(Tensor(own), 2), every[2])
    same(comm_func.scatter_tensor(Tensor(own), 1), every[1][rank : rank + 1])
    shapes = [(1, 3)] * size
    got, _ = comm_func.all_to_all_with_output_shape(shapes, [Tensor(own[i : i + 1]) for i in range(size)])
    same(ms.ops.concat(got), np.concatenate([one[rank : rank + 1] for one in every]))
    if rank < 2:
        create_group("first", [1, 0])
        same(comm_func.all_gather_into_tensor(Tensor(own), "first")[0], np.concatenate([every[1], every[0]]))
    if rank == 0:
        comm_func.send(Tensor(own), 3)
    if rank == 3:
        same(comm_func.recv(Tensor(own), 0), every[0])
    tensor = Tensor(own)
    distributed.all_reduce(tensor)
    same(tensor, total)
    objects = [None] * size
    distributed.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": i} for i in range(size)]
    comm_func.barrier()


def check_disagreements():
    """Calls that do not go together raise at every process, and leave the connection as it was."""
    rank, size = get_rank(), get_group_size()

    def refused(call, *told):
        try:
            call()
        except ValueError as error:
            assert all(one in str(error) for one in told), error
        else:
            raise AssertionError("no error")
        assert comm_func.all_reduce(Tensor([1.0]))[0] == size

    own = numbers(3 + (rank == 1), seed=rank)
    refused(lambda: comm_func.all_reduce(own), "all_reduce", "rank 1: f32[4]", "rank 2: f32[3]")
    refused(lambda: comm_func.all_gather_into_tensor(own), "all_gather", "rank 1: f32[4]")
    refused(lambda: comm_func.broadcast(own), "broadcast", "rank 1: f32[4]")
    refused(lambda: comm_func.broadcast(numbers(3), rank // 2), "broadcast", "f32[3] (1)")
    refused(lambda: comm_func.reduce_scatter_tensor(numbers(4 * (1 + rank // 3))), "reduce_scatter", "f32[8]")
    other = numbers(2).astype(ms.int32 if rank == 3 else ms.float32)  # of the same size in bytes
    refused(lambda: comm_func.all_reduce(other), "rank 3: i32[2]")
    refused(lambda: comm_func.all_reduce(numbers(2)) if rank else comm_func.barrier(), "rank 0", "another call")
    shapes = [(2 + (rank == 2 and i == 0),) for i in range(size)]
    pieces = [numbers(2) for _ in range(size)]
    refused(
        lambda: comm_func.all_to_all_with_output_shape(shapes, pieces),
        "rank 0 sends 2 elements to rank 2, which expects 3",
    )
    if rank < 2:
        try:
            if rank == 0:
                comm_func.send(numbers(5), 1)
            else:
                comm_func.recv(numbers(4), 0)
        except ValueError as error:
            assert "5" in str(error) and "4 elements of Float32" in str(error), error
        else:
            raise AssertionError("no error")
    comm_func.barrier()


def sum_in_order(arrays):
    """In the order of ranks, as the processes add."""
    total = arrays[0]
    for one in arrays[1:]:
        total = total + one
    return total


if __name__ == "__main__":
    init()
    if "fail" in sys.argv and get_rank() == 1:
        raise SystemExit("this rank fails on purpose")
    check_collectives()
    check_disagreements()
    check_training()
    check_data_parallel()
    print(f"rank {get_rank()} is right")
