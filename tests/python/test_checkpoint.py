"""Checkpoints: layouts, round trips, damaged files, a full disk, background saves, loading into networks."""

import os
import resource
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn

# What MindSpore 2.8.0 writes for [w: float32[2, 3], s: float32 scalar] with append_dict={'epoch': 3, 'lr': 0.01, 'flag': True,
# 'name': 'abc'} and crc_check=True.
MINDSPORE_FILE = bytes.fromhex(
    "0a2c0a01771227080208031207466c6f617433321a18000000000000803f0000004000004040000080400000a0400a140a0173120f1207466c6f61"
    "7433321a04000040400a1a0a0565706f636812111205496e7436341a0803000000000000000a150a026c72120f1207466c6f617433321a040ad723"
    "3c0a110a04666c616712091204426f6f6c1a01010a1d0a046e616d651215080012037374721a0c6100000062000000630000006372635f6e756d00"
    "0000000000625e65e6"
)
DTYPES = [
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def entries():
    return {name: Tensor(np.arange(6).reshape(2, 3) % 2, ms.float32).astype(getattr(ms, name)) for name in DTYPES}


def values(tensor):
    return tensor.float().asnumpy().tolist() if tensor.dtype == ms.bfloat16 else tensor.asnumpy().tolist()


def test_reads_a_file_of_mindspore(tmp_path):
    path = tmp_path / "a.ckpt"
    path.write_bytes(MINDSPORE_FILE)
    loaded = ms.load_checkpoint(str(path), crc_check=True)
    assert list(loaded) == ["w", "s", "epoch", "lr", "flag", "name"]
    assert values(loaded["w"]) == [[0, 1, 2], [3, 4, 5]]
    assert loaded["s"].shape == () and loaded["s"].name == "s" and isinstance(loaded["s"], Parameter)
    assert [str(loaded[key].dtype) for key in ("epoch", "lr", "flag")] == ["Int64", "Float32", "Bool"]
    assert loaded["name"] == "abc"


def test_writes_the_bytes_that_mindspore_writes(tmp_path):
    path = str(tmp_path / "a.ckpt")
    ms.save_checkpoint(
        [
            {"name": "w", "data": Tensor(np.arange(6).reshape(2, 3), ms.float32)},
            {"name": "s", "data": Tensor(3.0, ms.float32)},
        ],
        path,
        append_dict={"epoch": 3, "lr": 0.01, "flag": True, "name": "abc"},
        crc_check=True,
    )
    assert open(path, "rb").read() == MINDSPORE_FILE


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_round_trip_of_all_dtypes(tmp_path, format):
    path = str(tmp_path / "a")
    saved = entries()
    if format == "safetensors":
        del saved["complex128"]
    saved["scalar"] = Tensor(2.5, ms.float32)
    saved["empty"] = Tensor(np.zeros((0, 3), np.float32))
    saved["view"] = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).transpose(1, 0)
    ms.save_checkpoint(saved, path, format=format)
    loaded = ms.load_checkpoint(f"{path}.{format}", format=format)
    assert set(loaded) == set(saved)
    for name, tensor in saved.items():
        assert loaded[name].dtype == tensor.dtype and loaded[name].shape == tensor.shape, name
        assert values(loaded[name]) == values(tensor), name
    assert os.listdir(tmp_path) == [f"a.{format}"]


def test_tensors_of_a_file_are_their_own(tmp_path):
    path = str(tmp_path / "a.ckpt")
    ms.save_checkpoint({"a": Tensor([1.0])}, path)
    loaded = ms.load_checkpoint(path)["a"]
    loaded.fill_(5)
    ms.save_checkpoint({"a": Tensor([2.0])}, path)
    assert values(loaded) == [5.0] and values(ms.load_checkpoint(path)["a"]) == [2.0]


def test_safetensors_cannot_hold_text(tmp_path):
    with pytest.raises(NotImplementedError, match="'note' is text"):
        ms.save_checkpoint({"a": Tensor(1.0)}, str(tmp_path / "a"), append_dict={"note": "x"}, format="safetensors")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_damaged_files_name_file_and_byte(tmp_path, format):
    whole, bad = str(tmp_path / f"a.{format}"), str(tmp_path / f"bad.{format}")
    ms.save_checkpoint(nn.Dense(3, 2), whole, format=format)
    content = open(whole, "rb").read()
    for size in range(1, len(content), 7):
        open(bad, "wb").write(content[:size])
        try:
            ms.load_checkpoint(bad, format=format)
        except ValueError as error:
            assert f"{bad}: byte " in str(error) or "empty" in str(error)
    open(bad, "wb").write(b"PK\x03\x04 zip archive")
    with pytest.raises(ValueError, match="byte 0: not a "):
        ms.load_checkpoint(bad, format=format)


def test_crc(tmp_path):
    path = tmp_path / "a.ckpt"
    content = bytearray(MINDSPORE_FILE)
    content[30] ^= 1
    path.write_bytes(content)
    ms.load_checkpoint(str(path))
    with pytest.raises(ValueError, match="CRC-32"):
        ms.load_checkpoint(str(path), crc_check=True)


def test_arguments_of_save(tmp_path):
    net = nn.Dense(3, 2)
    path = str(tmp_path / "net.ckpt")
    for error, arguments in [
        (TypeError, dict(save_obj=3)),
        (TypeError, dict(ckpt_file_name=3)),
        (ValueError, dict(format="onnx")),
        (TypeError, dict(save_obj=[Tensor(1.0)])),
        (TypeError, dict(save_obj=[{"name": "a"}])),
        (TypeError, dict(append_dict=3)),
        (TypeError, dict(append_dict={"a": [1]})),
        (TypeError, dict(foo=1)),
        (ValueError, dict(async_save="x")),
        (TypeError, dict(crc_check=1)),
        (NotImplementedError, dict(enc_key=b"0123456789abcdef")),
        (FileNotFoundError, dict(ckpt_file_name=str(tmp_path / "none" / "a.ckpt"))),
    ]:
        with pytest.raises(error):
            ms.save_checkpoint(**{"save_obj": net, "ckpt_file_name": path, **arguments})
    assert os.listdir(tmp_path) == []
    ms.save_checkpoint(net, path, choice_func=lambda name: name == "bias")
    assert list(ms.load_checkpoint(path)) == ["bias"]


def test_arguments_of_load(tmp_path):
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(nn.Dense(3, 2), path)
    for error, arguments in [
        (ValueError, dict(ckpt_file_name=str(tmp_path / "none.ckpt"))),
        (TypeError, dict(ckpt_file_name=3)),
        (ValueError, dict(ckpt_file_name=str(tmp_path / "a.txt"))),
        (TypeError, dict(net=3)),
        (ValueError, dict(specify_prefix="zz")),
        (TypeError, dict(filter_prefix=3)),
        (ValueError, dict(format="onnx")),
        (NotImplementedError, dict(dec_key=b"0" * 16)),
    ]:
        with pytest.raises(error):
            ms.load_checkpoint(**{"ckpt_file_name": path, **arguments})
    assert list(ms.load_checkpoint(path, filter_prefix="w")) == ["bias"]
    assert list(ms.load_checkpoint(path, specify_prefix=["w"])) == ["weight"]
    assert list(ms.load_checkpoint(path, choice_func=lambda name: name == "bias")) == ["bias"]
    assert list(ms.load_checkpoint_async(path).result()) == ["weight", "bias"]


def test_load_into_net(tmp_path):
    path = str(tmp_path / "net.ckpt")
    source, target = nn.Dense(3, 2), nn.Dense(3, 2)
    ms.save_checkpoint(source, path)
    weight = target.weight
    assert ms.load_param_into_net(target, ms.load_checkpoint(path)) == ([], [])
    assert target.weight is weight and values(weight) == values(source.weight)
    x = Tensor(np.ones((1, 3), np.float32))
    assert values(target(x)) == values(source(x))
    half = {"weight": Parameter(Tensor(np.zeros((2, 3), np.float16))), "more": Parameter(Tensor([1.0]))}
    with pytest.warns(UserWarning, match="1 parameters in the 'net' are not loaded"):
        assert ms.load_param_into_net(target, half) == (["bias"], ["more"])
    assert target.weight.dtype == ms.float32 and not values(target.weight)[0][0]
    with pytest.warns(UserWarning, match="remove parameter prefix name: a"):
        ms.load_param_into_net(
            target,
            {
                "a.weight": Parameter(Tensor(np.ones((2, 3), np.float32))),
                "a.bias": Parameter(Tensor(np.ones(2, np.float32))),
            },
        )
    assert values(target.bias) == [1.0, 1.0]


def test_load_into_net_changes_nothing_when_it_fails():
    net = nn.Dense(3, 2)
    before = values(net.weight), values(net.bias)
    bias = Parameter(Tensor(np.ones(2, np.float32)))
    for wrong in (np.zeros((3, 3), np.float32), np.zeros((2, 3), np.int32)):
        with pytest.raises(RuntimeError, match="should have the same"):
            ms.load_param_into_net(net, {"bias": bias, "weight": Parameter(Tensor(wrong))})
    with pytest.raises(RuntimeError, match="same type"):
        ms.load_param_into_net(net, {"weight": Parameter(Tensor(np.zeros((2, 3), np.float16)))}, strict_load=True)
    for wrong in ([1], {"weight": 3}, {"weight": Tensor(1.0)}):
        with pytest.raises(TypeError):
            ms.load_param_into_net(net, wrong)
    assert before == (values(net.weight), values(net.bias))


def test_background_save_keeps_the_values_of_its_moment(tmp_path):
    net = nn.Dense(200, 200)
    before = values(net.weight)
    ms.save_checkpoint(net, str(tmp_path / "a.ckpt"), async_save=True)
    net.weight.fill_(7)
    from morel.train.serialization import wait_for_saves

    wait_for_saves()
    assert not ms.async_ckpt_thread_status()
    assert values(ms.load_checkpoint(str(tmp_path / "a.ckpt"))["weight"]) == before


def test_program_end_waits_for_background_saves(tmp_path):
    path = tmp_path / "a.ckpt"
    code = f"import morel as ms; from morel import nn; ms.save_checkpoint(nn.Dense(500, 500), {str(path)!r}, async_save='thread')"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert ms.load_checkpoint(str(path))["weight"].shape == (500, 500)


def test_full_disk_keeps_the_old_file(tmp_path):
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(nn.Dense(3, 2), path)
    before = open(path, "rb").read()
    code = textwrap.dedent(f"""
        import resource, morel as ms
        from morel import nn
        net = nn.Dense(300, 300)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        try:
            ms.save_checkpoint(net, {path!r})
        except OSError as error:
            print("caught", error)
        """)
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.startswith("caught") and path in out and "unchanged" in out
    assert open(path, "rb").read() == before and os.listdir(tmp_path) == ["net.ckpt"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 65536


def test_killed_while_saving(tmp_path):
    """Saves in an endless loop until it is killed; the file is whole at any moment."""
    path = str(tmp_path / "net.ckpt")
    code = f"import morel as ms; from morel import nn; net = nn.Dense(400, 400)\nwhile True: ms.save_checkpoint(net, {path!r})"
    process = subprocess.Popen([sys.executable, "-c", code])
    while not os.path.exists(path):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert ms.load_checkpoint(path)["weight"].shape == (400, 400)


def test_conversion_of_files(tmp_path):
    net = nn.Dense(3, 2)
    ms.save_checkpoint(net, str(tmp_path / "a.ckpt"))
    ms.ckpt_to_safetensors(str(tmp_path / "a.ckpt"), name_map={"weight": "w"})
    assert sorted(ms.load_checkpoint(str(tmp_path / "a.safetensors"), format="safetensors")) == ["bias", "w"]
    ms.safetensors_to_ckpt(str(tmp_path), save_path=str(tmp_path / "out"))
    assert values(ms.load_checkpoint(str(tmp_path / "out" / "a.ckpt"))["w"]) == values(net.weight)
    with pytest.raises(ValueError):
        ms.ckpt_to_safetensors(str(tmp_path / "none.ckpt"))


HERE = os.path.dirname(os.path.abspath(__file__))


def mindspore_python():
    """The interpreter of MindSpore's environment where PEERS names a folder with one."""
    path = os.path.join(os.environ.get("PEERS", ""), "ms", "bin", "python")
    return path if os.environ.get("PEERS") and os.path.exists(path) else None


def run_mindspore(*arguments, folder):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([mindspore_python(), *arguments], check=True, cwd=folder, env=environment)


def reference():
    """The parameters that make_checkpoint_reference.py writes."""
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3) * 3
    names = [name for name in DTYPES if not name.startswith(("bool", "complex"))]
    made = {name: Tensor(numbers).astype(getattr(ms, name)) for name in names}
    return {**made, "bool_": Tensor(numbers % 2 == 1), "scalar": Tensor(2.5, ms.float32)}


MORE = {"epoch": 3, "rate": 0.25, "flag": True, "note": "Grüße"}
# Files that MindSpore wrote once, and where it is at hand, writes now.
WRITTEN = ["before", *(["now"] if mindspore_python() else [])]


@pytest.mark.parametrize("written", WRITTEN)
def test_reads_what_mindspore_writes(tmp_path, written):
    folder = os.path.join(HERE, "data")
    if written == "now":
        folder = str(tmp_path)
        run_mindspore(os.path.join(HERE, "make_checkpoint_reference.py"), folder, folder=folder)
    loaded = ms.load_checkpoint(os.path.join(folder, "mindspore.ckpt"), crc_check=True)
    assert list(loaded) == [*reference(), *MORE]
    for name in ("epoch", "rate", "flag"):
        assert loaded.pop(name).item() == MORE[name]
    assert loaded.pop("note") == "Grüße"
    others = ms.load_checkpoint(os.path.join(folder, "mindspore.safetensors"), format="safetensors")
    for found in (loaded, others):
        assert set(found) == set(reference())
        for name, tensor in reference().items():
            assert isinstance(found[name], Parameter) and found[name].name == name
            assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape
            assert values(found[name]) == values(tensor)


@pytest.mark.parametrize("written", WRITTEN)
def test_mindspore_reads_what_is_written(tmp_path, written):
    parameters = [{"name": name, "data": tensor} for name, tensor in reference().items()]
    ms.save_checkpoint(parameters, str(tmp_path / "ours.ckpt"), append_dict=MORE, crc_check=True)
    if written == "before":  # the same bytes as MindSpore's own
        with open(os.path.join(HERE, "data", "mindspore.ckpt"), "rb") as file:
            assert (tmp_path / "ours.ckpt").read_bytes() == file.read()
        return
    ms.save_checkpoint(parameters, str(tmp_path / "ours.safetensors"), format="safetensors")
    code = textwrap.dedent("""
        import mindspore as ms
        a = ms.load_checkpoint("ours.ckpt", crc_check=True)
        b = ms.load_checkpoint("ours.safetensors", format="safetensors")
        more = [a.pop(name) for name in ("epoch", "rate", "flag", "note")]
        assert [*(float(value) for value in more[:3]), more[3]] == [3, 0.25, 1, "Grüße"] and set(a) == set(b)
        for name in a:
            x, y = (value.astype(ms.float64).asnumpy().tolist() for value in (a[name], b[name]))
            expected = 2.5 if name == "scalar" else [[0, 3, 6], [9, 12, 15]]
            assert x == y == (expected if name != "bool_" else [[0, 1, 0], [1, 0, 1]]), (name, x, y)
        """)
    run_mindspore("-c", code, folder=tmp_path)
