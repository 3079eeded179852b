"""torch.hub: folders with a hubconf.py, weights in the cache, hashes."""

import hashlib
import pathlib

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import hub


@pytest.fixture()
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub, "_dir", None)
    return tmp_path / "home" / "hub"


@pytest.fixture()
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "helper.py").write_text("def twice(x):\n    return 2 * x\n")
    (folder / "hubconf.py").write_text("dependencies = ['math']\nfrom helper import twice as _twice\n\n\ndef model(x, factor=1):\n"
                                       "    'Doubles.'\n    return _twice(x) * factor\n")
    return folder


def test_folders(repository):
    assert hub.load(str(repository), "model", 3, source="local", factor=5) == 30
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        hub.load(str(repository), "other", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(str(repository), "model", source="elsewhere")
    with pytest.raises(FileNotFoundError):
        hub.load(str(repository / ".."), "model", source="local")
    (repository / "hubconf.py").write_text("dependencies = ['no_such_module']\n")
    with pytest.raises(RuntimeError, match="no_such_module"):
        hub.load(str(repository), "model", source="local")


def test_repositories_in_the_cache(home, repository):
    home.mkdir(parents=True)
    repository.rename(home / "owner_name_main")
    assert hub.list("owner/name", trust_repo=True) == ["model"]
    assert hub.help("owner/name", "model") == "Doubles."
    assert hub.load("owner/name:main", "model", 4) == 8
    with pytest.raises(ValueError, match="owner/name"):
        hub.load("name", "model")


def test_places(home, tmp_path):
    assert hub.get_dir() == str(home)
    hub.set_dir(str(tmp_path / "other"))
    assert hub.get_dir() == str(tmp_path / "other")


def test_weights(home, tmp_path):
    source = tmp_path / "source.pth"
    torch.save({"a": torch.arange(3)}, source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    named = source.rename(tmp_path / f"source-{digest[:8]}.pth")
    loaded = hub.load_state_dict_from_url(named.as_uri(), progress=False, check_hash=True)
    assert loaded["a"].tolist() == [0, 1, 2]
    kept = home / "checkpoints" / named.name
    assert kept.exists()
    named.unlink()
    assert hub.load_state_dict_from_url(named.as_uri())["a"].tolist() == [0, 1, 2]


def test_wrong_hashes_and_missing_files_leave_nothing(tmp_path):
    source = tmp_path / "file"
    source.write_bytes(b"abc")
    target = tmp_path / "target"
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(source.as_uri(), str(target), hash_prefix="0000", progress=False)
    with pytest.raises(OSError):
        hub.download_url_to_file(pathlib.Path(tmp_path / "none").as_uri(), str(target), progress=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
