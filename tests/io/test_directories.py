"""Folders that appear whole or not at all: replaced in any place, after any kill, and without loss of others' files."""

import errno
import json
import os
import stat
import subprocess
import sys
from contextlib import suppress
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

import crowdgraph as cg
from crowdgraph.analysis.output import RESULTS, atomic_directory, check_directory, recover_directory
from crowdgraph.errors import StoreError
from crowdgraph.io import _directories, _temporary
from crowdgraph.io._directories import new_directory, put
from crowdgraph.io._files import atomic_file
from crowdgraph.io._temporary import label_of
from crowdgraph.io.columns import STORE


def fill(folder, text, *names):
    """Write files with the same text into a folder, and the record that lists them."""
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.json").write_text(json.dumps({"files": [*names, "run.json"], "text": text}))


def write(folder, text="old", names=("a.txt", "figures/b.txt"), *, force=False, meanwhile=lambda: None):
    with atomic_directory(folder, force=force) as part:
        fill(part, text, *names)
        meanwhile()


def content(folder):
    """Return the text of all files in a folder but the record, hidden ones too, and the folders that are empty."""
    return {
        path.relative_to(folder).as_posix(): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != "run.json" and not path.is_symlink() and (path.is_file() or not list(path.iterdir()))
    }


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["exchange", "two renames", "busy"])
def way(request, monkeypatch):
    """Both ways to put a folder into the place of another, and the way without any."""
    if request.param == "two renames":
        monkeypatch.setattr(_directories, "_exchange", lambda one, other: False)
    if request.param == "busy":

        def refuse(one, other):
            raise OSError(errno.EBUSY, "Device or resource busy")

        monkeypatch.setattr(_directories, "_exchange", refuse)
    return request.param


@pytest.fixture
def mount(tmp_path):
    """A mount point, for those who may mount."""
    path = tmp_path / "mnt"
    path.mkdir()
    if not Path("/bin/mount").exists():
        pytest.skip("there is no mount here")
    if subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path], check=False).returncode:
        pytest.skip("only root may mount")
    yield path
    subprocess.run(["/bin/umount", path], check=True)


NEW = {"a.txt": "new", "c/d.txt": "new"}


def replace(folder, **options):
    write(folder, "new", NEW, force=True, **options)


def test_a_folder_is_replaced_in_any_way(tmp_path, way):
    write(tmp_path / "out")
    replace(tmp_path / "out")
    assert content(tmp_path) == {f"out/{name}": text for name, text in NEW.items()}


def test_a_mount_point_is_filled_and_replaced(mount):
    write(mount)
    assert content(mount) == {"a.txt": "old", "figures/b.txt": "old"}
    replace(mount)
    assert content(mount) == NEW
    assert json.loads((mount / "run.json").read_text())["text"] == "new"


def test_where_the_shell_stands_stays(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    write(".")
    replace(".")
    assert os.path.samestat(out.stat(), Path().stat())
    assert content(Path()) == NEW


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")
    write(tmp_path / "out")
    replace(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert content(tmp_path / "elsewhere") == NEW


@pytest.mark.parametrize("place", ["beside", "inside"])
def test_what_the_user_has_there_stays(tmp_path, monkeypatch, way, place):
    out = tmp_path / "out"
    write(out)
    (out / "mine/empty").mkdir(parents=True)
    (out / "target").symlink_to("../elsewhere")
    (out / "figures/link").symlink_to(tmp_path)
    if place == "inside":
        monkeypatch.chdir(out)
    replace(out)
    assert (out / "target").readlink() == Path("../elsewhere")
    assert (out / "figures/link").readlink() == tmp_path
    assert (out / "mine/empty").is_dir()
    assert NEW.items() <= content(out).items()
    assert not (out / "figures/b.txt").exists()


@pytest.mark.parametrize("place", ["beside", "inside"])
def test_files_that_appear_meanwhile_are_not_lost(tmp_path, monkeypatch, way, place):
    out = tmp_path / "out"
    write(out)

    def meanwhile():
        (out / "notes.txt").write_text("mine")
        (out / "figures/sketch.txt").write_text("mine")
        (out / "c").write_text("mine")

    if place == "inside":
        monkeypatch.chdir(out)
    replace(out, meanwhile=meanwhile)
    texts = content(out)
    assert NEW.items() <= texts.items()
    assert {name for name, text in texts.items() if text == "mine"} == {"notes.txt", "figures/sketch.txt", "c~1~"}


@pytest.mark.parametrize("place", ["beside", "inside"])
def test_of_two_runs_that_write_a_new_folder_none_is_lost(tmp_path, monkeypatch, way, place):
    out = tmp_path / "out"
    if place == "inside":
        out.mkdir()
        monkeypatch.chdir(out)
    write(out, "second", meanwhile=lambda: write(out, "first"))
    assert content(out) == {
        "a.txt": "second",
        "figures/b.txt": "second",
        "a.txt~1~": "first",
        "figures/b.txt~1~": "first",
        "run.json~1~": (out / "run.json~1~").read_text(),
    }


def test_a_record_that_names_files_elsewhere_does_no_harm(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out)
    (tmp_path / "precious.txt").write_text("mine")
    (out / "run.json").write_text(json.dumps({"files": ["a.txt", "figures/b.txt", "run.json", "../precious.txt"]}))
    monkeypatch.chdir(out)
    replace(out)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_permissions_are_those_of_what_is_replaced_from_the_beginning(tmp_path):
    out, file = tmp_path / "out", tmp_path / "private.txt"
    write(out)
    out.chmod(0o700)
    with atomic_directory(out, force=True) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o700
        fill(part, "new", *NEW)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    for mode in (0o600, 0o640, 0o400):
        file.write_text("old")
        file.chmod(mode)
        with atomic_file(file) as part:
            assert stat.S_IMODE(part.stat().st_mode) == mode | 0o600
            part.write_text("new")
        assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", mode)
        file.unlink()


def test_work_that_cannot_take_its_place_is_kept(tmp_path, monkeypatch):
    write(tmp_path / "out")

    def refuse(one, other):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_directories, "_exchange", refuse)
    with pytest.raises(StoreError, match=r"Input/output error\. What could not is in .*out\.new'; move it from there"):
        replace(tmp_path / "out")
    assert content(tmp_path / "out") == {"a.txt": "old", "figures/b.txt": "old"}
    assert content(tmp_path / "out.new") == NEW
    assert names(tmp_path) == ["out", "out.new"]


def refuse_rename(monkeypatch, number, which):
    """Let the operating system refuse the renames of which `which(source, target)` says so."""
    rename = os.rename

    def refusing(source, target):
        if which(Path(source), Path(target)):
            raise OSError(number, os.strerror(number))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refusing)


def test_a_file_that_took_the_name_meanwhile_stays(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(
        StoreError, match=r"could not be moved to '.*out': Not a directory\. What could not is in .*out.new"
    ):
        write(out, "new", NEW, meanwhile=lambda: out.write_text("mine"))
    assert out.read_text() == "mine"
    assert content(tmp_path / "out.new") == NEW


def test_a_folder_that_became_a_mount_point_meanwhile_is_filled(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out)
    refuse_rename(monkeypatch, errno.EBUSY, lambda source, target: target == out)
    replace(out)
    assert content(tmp_path) == {f"out/{name}": text for name, text in NEW.items()}


def test_two_renames_of_which_the_second_fails_leave_the_old(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out)
    monkeypatch.setattr(_directories, "_exchange", lambda one, other: False)
    refuse_rename(monkeypatch, errno.EIO, lambda source, target: target == out and source.suffix == ".part")
    with pytest.raises(StoreError, match=r"Input/output error\. What could not is in .*out\.new'"):
        replace(out)
    assert content(out) == {"a.txt": "old", "figures/b.txt": "old"}
    assert content(tmp_path / "out.new") == NEW


def test_work_that_cannot_be_moved_at_all_is_named_where_it_is(tmp_path, monkeypatch):
    refuse_rename(monkeypatch, errno.EIO, lambda source, target: True)
    with pytest.raises(StoreError, match=r"What could not is in '(.*\.part)'; move it from there") as caught:
        write(tmp_path / "out", "new", NEW)
    (part,) = tmp_path.iterdir()
    assert str(part) in str(caught.value)
    assert content(part) == NEW


def test_names_are_exchanged_where_the_system_can(tmp_path, monkeypatch):
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "inside").mkdir(parents=True)
    other.mkdir()
    assert _directories._exchange(one, other)
    assert (other / "inside").is_dir()
    # What Linux calls an invalid argument, and some file systems answer to any exchange.
    assert not _directories._exchange(other, other / "inside")
    with pytest.raises(FileNotFoundError):
        _directories._exchange(one, tmp_path / "nowhere")
    monkeypatch.setattr(_directories.ctypes, "CDLL", lambda *_, **__: object())
    assert not _directories._exchange(one, other)


def test_a_folder_of_the_user_whose_name_is_a_file_now_does_not_lose_its_files(tmp_path):
    out = tmp_path / "out"
    write(out)
    write(out, "new", ("figures",), force=True, meanwhile=lambda: (out / "figures/sketch.txt").write_text("mine"))
    assert content(out) == {"figures": "new", "sketch.txt": "mine"}


def test_links_that_replaced_our_files_stay(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out)
    (out / "a.txt").unlink()
    (out / "a.txt").symlink_to("../elsewhere")
    monkeypatch.chdir(out)
    write(out, "new", ("b.txt",), force=True)
    assert (out / "a.txt").readlink() == Path("../elsewhere")
    assert content(out) == {"b.txt": "new"}


def test_why_a_file_inside_could_not_be_written_is_said_once(tmp_path):
    with (
        pytest.raises(StoreError, match=r"^The results .*: No space left on device\. None were kept; free some space"),
        atomic_directory(tmp_path / "out") as part,
        atomic_file(part / "x"),
    ):
        raise OSError(errno.ENOSPC, "full")
    assert not names(tmp_path)


def test_a_folder_cannot_be_in_a_file(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with (
        pytest.raises(StoreError, match=r"could not be written to '.*out': File exists\. None were kept"),
        new_directory(tmp_path / "notes/out", record=RESULTS),
    ):
        pass
    assert content(tmp_path) == {"notes": "mine"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_files_stay_with_their_owner(tmp_path):
    file = tmp_path / "theirs.txt"
    file.write_text("old")
    os.chown(file, 1234, 2345)
    with atomic_file(file) as part:
        part.write_text("new")
    assert (file.read_text(), file.stat().st_uid, file.stat().st_gid) == ("new", 1234, 2345)


def test_a_failure_leaves_what_others_write_into_the_same_new_folder(tmp_path):
    def fail():
        write(tmp_path / "new/two")
        raise OSError("full")

    with pytest.raises(StoreError, match="full"):
        write(tmp_path / "new/one", meanwhile=fail)
    assert names(tmp_path / "new") == ["two"]


# After kills


class Killed(BaseException):
    """Stands for a kill."""


def kill_at(monkeypatch, call, after):
    """Let the process end at the so-manyth call of a function of the operating system, without any clean-up."""
    calls = []
    original = getattr(os, call)

    def counting(*args, **options):
        calls.append(args)
        if len(calls) > after:
            raise Killed
        return original(*args, **options)

    monkeypatch.setattr(os, call, counting)


@pytest.mark.parametrize("place", ["beside", "inside"])
@pytest.mark.parametrize("after", range(7))
def test_after_a_kill_at_any_rename_there_is_the_old_or_the_new(tmp_path, monkeypatch, way, place, after):
    out = tmp_path / "out"
    write(out)
    (out / "empty").mkdir()
    if place == "inside":
        monkeypatch.chdir(out)
    with monkeypatch.context() as patch:
        # Nothing is cleaned up after a kill.
        patch.setattr(_directories, "remove", lambda path: None)
        for call in ("rename", "replace"):
            kill_at(patch, call, after)
        with suppress(Killed):
            replace(out, meanwhile=lambda: (out / "notes.txt").write_text("mine"))
    recover_directory(out)
    texts = content(out)
    assert texts.pop("notes.txt") == "mine"
    assert texts.pop("empty", "") is None
    old = {"a.txt": "old", "figures/b.txt": "old"}
    assert texts in (old, NEW)
    assert json.loads((out / "run.json").read_text())["text"] == texts["a.txt"]
    assert names(tmp_path) == ["out"]


def test_leftovers_of_processes_that_run_stay_and_others_go(tmp_path):
    running, killed = tmp_path / ".out.00000001.part", tmp_path / ".out.00000002.part"
    for path in (running, killed, tmp_path / ".other.00000003.part"):
        path.mkdir()
    descriptor = os.open(running, os.O_RDONLY)
    flock(descriptor, LOCK_EX)
    write(tmp_path / "out")
    assert names(tmp_path) == [".other.00000003.part", ".out.00000001.part", "out"]
    os.close(descriptor)
    check_directory(tmp_path / "out", force=True)
    assert names(tmp_path) == [".other.00000003.part", "out"]


def test_leftovers_that_another_process_puts_right_now_stay(tmp_path):
    out = tmp_path / "out"
    write(out)
    for left in (tmp_path / ".out.00000001.old", out / ".out.00000002.complete"):
        left.mkdir()
        descriptor = os.open(left, os.O_RDONLY)
        flock(descriptor, LOCK_EX)
        recover_directory(out)
        assert left.is_dir()
        os.close(descriptor)
        recover_directory(out)
        assert not left.exists()
    assert content(tmp_path) == {"out/a.txt": "old", "out/figures/b.txt": "old"}


def test_a_part_that_others_took_for_left_over_is_made_again(tmp_path):
    made = []

    def make(path):
        made.append(path)
        if len(made) > 1:
            path.touch()
        if len(made) == 2:
            descriptors.append(os.open(path, os.O_RDONLY))
            flock(descriptors[0], LOCK_EX)

    descriptors = []
    part, descriptor = _temporary.make_part(tmp_path / "x", make)
    assert part == made[2]
    for one in (descriptor, *descriptors):
        os.close(one)


def test_file_systems_without_locks_are_written_to(tmp_path, monkeypatch):
    def refuse(number):
        def flock(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("fcntl.flock", flock)

    refuse(errno.ENOLCK)
    write(tmp_path / "out")
    assert content(tmp_path / "out") == {"a.txt": "old", "figures/b.txt": "old"}
    refuse(errno.EIO)
    with pytest.raises(StoreError, match="Input/output error"):
        write(tmp_path / "other")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    replace(tmp_path / "out")
    assert content(tmp_path / "out") == NEW


def test_folders_that_cannot_be_written_through_are_passed_over(tmp_path, monkeypatch):
    def refuse(call, number):
        def refusing(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, refusing)

    (tmp_path / "x").touch()
    refuse("fsync", errno.EINVAL)
    _temporary.sync(tmp_path)
    with pytest.raises(OSError, match="Invalid argument"):
        _temporary.sync(tmp_path / "x")
    refuse("fsync", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        _temporary.sync(tmp_path)
    refuse("open", errno.EACCES)
    _temporary.sync(tmp_path)
    with pytest.raises(PermissionError):
        _temporary.sync(tmp_path / "x")


def test_leftovers_of_files_go(tmp_path):
    running, killed, other = (tmp_path / f".x.crowd.0000000{number}.part" for number in range(3))
    for path in (running, killed):
        path.write_text("unfinished")
    other.symlink_to("elsewhere")
    with running.open() as file:
        flock(file.fileno(), LOCK_EX)
        with atomic_file(tmp_path / "x.crowd") as part:
            assert part.exists()
    assert names(tmp_path) == [running.name, other.name, "x.crowd"]


def test_files_that_are_being_written_are_nobody_elses_leftovers(tmp_path):
    with atomic_file(tmp_path / "x") as first:
        first.write_text("first")
        with atomic_file(tmp_path / "x") as second:
            second.write_text("second")
        assert (tmp_path / "x").read_text() == "second"
    assert (tmp_path / "x").read_text() == "first"


def test_a_store_that_a_kill_left_without_its_name_comes_back(tmp_path, graph):
    graph.save(tmp_path / "x.store", format="columns")
    (tmp_path / "x.store").rename(tmp_path / ".x.store.old")
    (tmp_path / ".x.store.part").mkdir()
    with pytest.raises(StoreError, match="is there already"):
        cg.simulate.crowd(seed=0).graph.save(tmp_path / "x.store", format="columns")
    assert cg.load(tmp_path / "x.store").equals(graph)


def test_files_in_a_store_that_is_replaced_stay(tmp_path, graph):
    graph.save(tmp_path / "x.store", format="columns")
    (tmp_path / "x.store/notes.txt").write_text("mine")
    graph.first(2).save(tmp_path / ".x.store.part", format="columns")
    put(tmp_path / ".x.store.part", tmp_path / "x.store", STORE, is_replacing=True)
    assert len(cg.load(tmp_path / "x.store").responses) == 2
    assert (tmp_path / "x.store/notes.txt").read_text() == "mine"
    assert names(tmp_path) == ["x.store"]


def test_hidden_names_of_different_targets_differ_and_are_short():
    targets = [Path("/x") / ("n" * 200 + end) for end in ("a", "b")]
    assert len({label_of(target) for target in targets}) == 2
    assert all(len(label_of(target)) <= 40 for target in targets)
    assert label_of(Path("/")) == "root"
    assert RESULTS.files(Path("/nowhere")) == set()
