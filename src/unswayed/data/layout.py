"""Which level of a folder holds the classes, and which folders are for training and testing."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unswayed.data.listing import Folder, Listing, list_classes, readable, scan, some
from unswayed.errors import UsageError

TRAIN = ("train", "training")
TEST = ("test", "testing")
VALIDATION = ("val", "valid", "validation", "dev", "eval", "evaluation")
UNLABELLED = ("pred", "predict", "prediction", "predictions", "unlabeled", "unlabelled")


@dataclass(frozen=True)
class Layout:
    """The folders that are trained on and tested on, and what is odd about them."""

    root: Path
    train: tuple[Folder, ...]  # the folders in them are the classes
    test: Folder | None
    unused: tuple[Folder, ...]  # other splits, and folders without labels
    remarks: tuple[str, ...] = ()

    def listings(self) -> dict[str, Listing]:
        """Return the images for "train" and, if there are any, for "test"."""
        listed = {"train": list_classes(self.train, self.root)}
        return listed | ({"test": list_classes([self.test], self.root)} if self.test else {})


def find_layout(root: Path, *, links: bool = False, train_folders: Sequence[str] = ()) -> Layout:
    """Find the folders of training and test classes.

    Args:
        root: the folder as the user gave it.
        links: follow links that leave it.
        train_folders: the folders to train on, relative to the root, instead of those found.

    Raises:
        UsageError: there are no two classes to train on, or nothing says which level holds them.
    """
    if not root.is_dir():
        raise UsageError(f"data.path: there is no folder {root}")
    top = scan(root, links=links)
    chosen, others = _named(top, train_folders) if train_folders else _recognised(top)
    levels = [level for folder in chosen if (level := _level(folder))]
    known = _names(*levels)
    if train_folders:  # one of several may hold fewer classes
        levels = [level for folder in chosen if (level := _level(folder, known))]
    if len(known) < 2 or len(levels) < len(chosen):
        raise _no_classes(top, chosen)
    test, labels = _test(others, known)
    unused = tuple(folder for folder in others if folder is not test)
    layout = Layout(root, tuple(levels), labels, unused)
    odd = [
        *([] if train_folders else _remarks_on_train(layout, chosen[0], test)),
        *_remarks_on_test(layout, test),
        *_remarks_on_unused(layout, chosen),
        *_remarks_on_images(layout, top),
    ]
    return replace(layout, remarks=tuple(odd))


def role(name: str) -> str:
    """Return "train", "test", "validation", "unlabelled", or "" by the words of a folder's name."""
    words = set(re.split(r"[\W\d_]+", name.lower()))
    roles = {"train": TRAIN, "test": TEST, "validation": VALIDATION, "unlabelled": UNLABELLED}
    found = [key for key, names in roles.items() if words & set(names)]
    return found[0] if len(found) == 1 else ""  # "train_test_split" is none of them


def _names(*folders: Folder) -> set[str]:
    return {label.name for folder in folders for label in folder.filled}


def _level(folder: Folder, known: Collection[str] = ()) -> Folder | None:
    """Follow single folders down to two or more folders, or to one whose name is known."""
    while len(folder.filled) == 1 and folder.filled[0].name not in known:
        folder = folder.filled[0]
    return folder if folder.filled else None


def _recognised(top: Folder) -> tuple[list[Folder], list[Folder]]:
    """Return the folder to train on, and those beside it."""
    level = _level(top)
    if level is None:
        raise _no_classes(top, [top])
    inside = level.filled
    if not _is_divided(level):
        divided = [folder for folder in inside if _is_divided(_level(folder))]
        if len(divided) > 1:
            raise UsageError(
                f"{top.path} holds several data sets, each with folders for training and testing: "
                f"{_list(divided)}; give the path of one of them"
            )
        if divided:
            chosen, others = _recognised(divided[0])
            return chosen, others + [folder for folder in inside if folder is not divided[0]]
    train = sorted((f for f in inside if role(f.name) == "train" and _level(f)), key=_plainness)
    if train:
        return train[:1], [folder for folder in inside if folder is not train[0]]
    return _without_train(top, level)


def _is_divided(level: Folder | None) -> bool:
    """Say whether a level holds a folder of training classes and another split."""
    inside = level.filled if level else ()
    train = any(role(folder.name) == "train" and _level(folder) for folder in inside)
    return train and any(role(folder.name) not in ("", "train") for folder in inside)


def _without_train(top: Folder, level: Folder) -> tuple[list[Folder], list[Folder]]:
    """Tell classes from splits where no folder is named like a training set."""
    splits = [f for f in level.filled if role(f.name) in ("test", "validation") and f.filled]
    plain = [folder for folder in level.filled if folder not in splits]
    if not plain:
        raise UsageError(
            f"{top.path} has folders for testing ({_list(splits)}) but none for training; rename "
            f"one to train, or say which to train on: {_option(top.path, splits[:1])}"
        )
    if splits and len(plain) == 1 and _level(plain[0]):
        return plain, splits
    known = {folder.name for folder in plain}
    if splits and (all(f.files for f in plain) or any(known & _names(f) for f in splits)):
        classes = tuple(folder for folder in level.folders if folder not in splits)
        return [Folder(level.path, level.files, classes)], splits
    roles = {role(folder.name) for folder in level.filled}
    if "" not in roles and len(roles) > 1:  # images in train/ and test/, but not by class
        raise _no_classes(top, list(level.filled))
    return [level], []


def _named(top: Folder, names: Sequence[str]) -> tuple[list[Folder], list[Folder]]:
    """Return the folders of these paths, and those beside them."""
    chosen: dict[Path, Folder] = {}
    beside: dict[Path, Folder] = {}
    for name in names:
        folder, parent = top, top
        for part in Path(name).parts:
            parent = folder
            found = [each for each in folder.filled if part in (each.path.name, each.name)]
            if not found:
                raise UsageError(
                    f"data.train_folders: {name!r} is no folder with images in {top.path}; in "
                    f"{folder.path} there are: {_list(folder.filled) or 'none'}"
                )
            folder = found[0]
        chosen[folder.path] = folder
        beside |= {each.path: each for each in parent.filled}
    return [*chosen.values()], [each for path, each in beside.items() if path not in chosen]


def _test(others: Sequence[Folder], known: set[str]) -> tuple[Folder | None, Folder | None]:
    """Return the folder to test on, and the level in it that holds known classes."""
    for wanted in ("test", "validation"):
        for folder in sorted((f for f in others if role(f.name) == wanted), key=_plainness):
            level = _level(folder, known)
            if level and known & _names(level):
                return folder, level
    return None, None


def _plainness(folder: Folder) -> tuple[bool, int, str]:
    """Sort "train" before "train_set" before "train_set_2"."""
    return folder.name.lower() not in (*TRAIN, *TEST, *VALIDATION), len(folder.name), folder.name


def _no_classes(top: Folder, chosen: Sequence[Folder]) -> UsageError:
    """Say what is there instead of two classes."""
    places = [each for folder in chosen for each in _all(folder) if each.files]
    empty = [folder for folder in _all(top) if not folder.count and folder is not top]
    if not top.count:
        seen = "it holds no images"
    elif len(places) == 1 and places[0].path == top.path:
        seen = f"{top.count} images lie directly in it, and nothing says what they show"
    elif len(chosen) > 1 and all(folder.files for folder in chosen):
        seen = f"images lie directly in {_list(chosen)}, and nothing says what they show"
    else:
        seen = f"there is one class only, {places[-1].name!r}: nothing to tell apart"
    return UsageError(
        f"{top.path} has no two class folders with images: {seen}"
        + (f" ({_list(empty)}: no images)" if empty else "")
        + "; expected is <class>/<image>.jpg in it, with two or more classes, or the same below "
        "train and test"
    )


def _all(folder: Folder) -> Iterator[Folder]:
    yield folder
    for each in folder.folders:
        yield from _all(each)


def _list(folders: Sequence[Folder]) -> str:
    return some([folder.name for folder in folders])


def _below(root: Path, folder: Folder) -> str:
    """Return a folder's path below the root, as in ids."""
    return readable(folder.path.relative_to(root).as_posix())


def _option(root: Path, folders: Sequence[Folder]) -> str:
    """Return the option that trains on some folders, for a shell."""
    paths = json.dumps([_below(root, folder) for folder in folders], ensure_ascii=False)
    return shlex.quote(f"data.train_folders={paths}")


def _remarks_on_train(layout: Layout, chosen: Folder, test: Folder | None) -> Iterator[str]:
    level, root = layout.train[0], layout.root
    usual = level.path.parent == root and level.name.lower() in TRAIN
    if level.path != root and not usual:
        yield f"the classes lie in {_below(root, level)}: that level is used"
    if test and not role(chosen.name) and chosen.path != test.path.parent:
        yield f"{chosen.name} is trained on, as it lies beside {test.name}"


def _remarks_on_test(layout: Layout, test: Folder | None) -> Iterator[str]:
    if test is None or layout.test is None:
        return
    if test.name.lower() != "test":
        why = ", as no test folder has classes" if role(test.name) == "validation" else ""
        yield f"{_below(layout.root, layout.test)} is tested on{why}"
    lacking = sorted(_names(*layout.train) - _names(layout.test))
    if lacking:
        yield f"{test.name} has no images of {some(list(map(repr, lacking)))}"


def _remarks_on_unused(layout: Layout, chosen: Sequence[Folder]) -> Iterator[str]:
    known = _names(*layout.train)
    for folder in layout.unused:
        name, level = _below(layout.root, folder), _level(folder, known)
        if level is None or known.isdisjoint(_names(level)):
            yield f"{name} is not used: its {folder.count} images are not in folders of the classes"
        elif chosen[0].path == folder.path.parent:
            yield f"{name} is not used ({folder.count} images)"
        else:
            option = _option(layout.root, [*chosen, folder])
            yield f"{name} is not used ({folder.count} images); to train on it as well: {option}"


def _remarks_on_images(layout: Layout, top: Folder) -> Iterator[str]:
    used = (*layout.train, *([layout.test] if layout.test else []))
    for level in used:
        yield from _remarks_on_classes(layout.root, level)
    for place in _all(top):
        if place.files and any(level.path.is_relative_to(place.path) for level in used):
            where = "the folder itself" if place is top else _below(layout.root, place)
            yield f"{len(place.files)} images lie in {where}, beside the class folders: left out"


def _remarks_on_classes(root: Path, level: Folder) -> Iterator[str]:
    for folder in level.folders:
        if not folder.count:
            yield f"the class folder {readable(str(folder.path))} holds no images"
        elif role(folder.name):
            yield f"{_below(root, folder)} is taken for a class, as the folders beside it are"
    deep = [folder for folder in level.filled if not folder.files and _level(folder)]
    if deep:
        inner = _level(deep[0]) or deep[0]
        yield (
            f"the images of {_list(deep)} lie in folders of their own ({_list(inner.filled)}): all "
            "of them count for that class"
        )
