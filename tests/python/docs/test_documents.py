"""The documents say what is true: links lead somewhere, listings run, listed names exist."""
import importlib
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([*TOP.glob("*.md"), *TOP.glob("docs/*.md"), *TOP.glob("bench/*.md")])


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_to_files(document):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readmes_listings_train(name, tmp_path, monkeypatch, capsys):
    datasets = pytest.importorskip("msadapter.torchvision.datasets")
    monkeypatch.chdir(tmp_path)

    def made_up(root, train, download, transform):
        return datasets.FakeData(size=256, image_size=(3, 32, 32), num_classes=10, transform=transform)

    monkeypatch.setattr(datasets, "CIFAR10", made_up)
    names = {}
    for source in blocks(TOP / name, "python"):
        exec(compile(source, name, "exec"), names)
    losses = re.findall(r"^loss (\d\.\d{4})$", capsys.readouterr().out, re.M)
    assert len(losses) == 2 and all(2 < float(loss) < 3 for loss in losses)
    assert (tmp_path / "lenet.pth").exists()


def test_both_readmes_show_the_same_code():
    assert blocks(TOP / "README.md", "python") == blocks(TOP / "README.zh.md", "python")


def test_supported_names_exist():
    document = TOP / "docs" / "supported.md"
    title, missing = None, []
    roots = {"torch": "msadapter.pytorch", "torchvision": "msadapter.torchvision", "mindspore": "msadapter.mindspore"}
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            title = line[3:]
            root, _, rest = title.partition(".")
            if title == "torch.Tensor":
                holder = importlib.import_module("msadapter.pytorch").Tensor
            else:
                holder = importlib.import_module(roots[root] + ("." + rest if rest else ""))
        elif title and line.startswith("`"):
            missing += [f"{title}.{name}" for name in re.findall(r"`(\w+)`", line) if not hasattr(holder, name)]
    assert title and not missing
