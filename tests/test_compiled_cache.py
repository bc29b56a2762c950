"""Where compiled code is kept by users who can write neither to the package nor to a home."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import crowdgraph
from crowdgraph import _compiled_cache

ROOT = Path(crowdgraph.__file__).parents[1]
# A kernel that takes little time to compile.
COMPILE = "from crowdgraph.kernels.special import digamma_and_log_gamma as f; print(f(2.0)[0])"
NOTE = "crowdgraph: neither its own directory nor a home can be written to, so compiled code is kept in "
# Root may write anywhere, unless it gives up that power.
AS_OTHERS = ["setpriv", "--bounding-set=-dac_override", "--"] if os.getuid() == 0 else []


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package without compiled code."""
    root = tmp_path_factory.mktemp("site")
    source = Path(crowdgraph.__file__).parent
    shutil.copytree(source, root / "crowdgraph", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [path for path in (root, *root.rglob("*")) if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    yield root
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(bool(AS_OTHERS) and not shutil.which("setpriv"), reason="root can write anywhere")
def test_without_a_home_code_is_compiled_once(package, tmp_path):
    """Neither the package nor the home can be written to."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(package),
        "HOME": str(package),
        "TMPDIR": str(tmp_path),
    }
    folder = tmp_path / f"crowdgraph-{os.getuid()}"
    written = []
    for _ in range(2):
        command = [*AS_OTHERS, sys.executable, "-B", "-c", COMPILE]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) == pytest.approx(0.4227843, abs=1e-6)
        assert done.stderr.count(f"{NOTE}{folder}.") == 1
        written.append({file: file.stat().st_mtime_ns for file in folder.rglob("*.nb*")})
    assert written[0]
    assert written[1] == written[0]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of this kind")
def test_without_space_code_is_compiled_and_used(tmp_path):
    """A limit on the size of files stands for a disk that is full."""
    import resource

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", COMPILE],
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(0.4227843, abs=1e-6)
    assert done.stderr.count("crowdgraph: compiled code cannot be kept (File too large)") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No usual place for compiled code: the function to call, and the directory for temporary files."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(_compiled_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(_compiled_cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_compiled_cache, "_is_writable", lambda _: False)
    return _compiled_cache.ensure_cache.__wrapped__, tmp_path


@pytest.fixture
def settings(monkeypatch):
    """The settings of numba, which are put back."""
    from numba import config

    monkeypatch.setattr(config, "CACHE_DIR", config.CACHE_DIR)
    yield config
    os.environ.pop("NUMBA_CACHE_DIR", None)


def test_a_directory_that_others_may_write_to_is_not_used(nowhere, settings, capsys):
    ensure, temporary = nowhere
    folder = temporary / f"crowdgraph-{os.getuid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    ensure()
    chosen = Path(settings.CACHE_DIR)
    assert chosen != folder
    assert chosen.parent == temporary
    assert stat.S_IMODE(chosen.stat().st_mode) == 0o700
    assert os.environ["NUMBA_CACHE_DIR"] == str(chosen)
    assert f"kept in {chosen}. Set NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_a_link_is_not_used(nowhere, settings):
    ensure, temporary = nowhere
    (temporary / "elsewhere").mkdir(mode=0o700)
    (temporary / f"crowdgraph-{os.getuid()}").symlink_to(temporary / "elsewhere")
    ensure()
    assert Path(settings.CACHE_DIR).name not in ("elsewhere", f"crowdgraph-{os.getuid()}")


def test_without_any_place_nothing_is_kept(nowhere, settings, capsys, monkeypatch):
    from numba import njit
    from numba.core.dispatcher import Dispatcher

    ensure, temporary = nowhere
    monkeypatch.setattr(_compiled_cache.tempfile, "gettempdir", lambda: str(temporary / "no" / "such" / "place"))
    monkeypatch.setattr(_compiled_cache.tempfile, "tempdir", str(temporary / "no"))
    monkeypatch.setattr(Dispatcher, "enable_caching", Dispatcher.enable_caching)
    ensure()
    assert "kept nowhere, so that each run compiles anew" in capsys.readouterr().err
    assert njit(cache=True)(lambda x: x).stats.cache_path is None


def test_the_usual_place_is_left_alone(monkeypatch, settings, capsys):
    before = settings.CACHE_DIR
    monkeypatch.setattr(_compiled_cache, "_is_writable", lambda _: True)
    _compiled_cache.ensure_cache.__wrapped__()
    assert before == settings.CACHE_DIR
    assert capsys.readouterr().err == ""
