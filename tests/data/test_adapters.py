from __future__ import annotations

import numpy as np
import pytest
import torch
import torchvision
from pictures import class_folders, picture

from unswayed import UsageError
from unswayed.data import from_huggingface, from_torch


def test_a_torchvision_data_set(tmp_path, rng):
    class_folders(tmp_path / "d", rng, {"a": 2, "b": 3})
    data = from_torch(torchvision.datasets.ImageFolder(tmp_path / "d"), size=12)
    assert data.classes == ("a", "b")
    assert data.given.tolist() == [0, 0, 1, 1, 1]
    assert tuple(data.images.shape) == (5, 3, 12, 12)


@pytest.mark.parametrize(
    "image",
    [
        np.full((5, 6, 3), 51, np.uint8),
        torch.full((3, 5, 6), 51, dtype=torch.uint8),
        torch.full((3, 5, 6), 0.2),
    ],
)
def test_arrays_and_tensors(image):
    data = from_torch([(image, 0), (image, 1)])
    assert tuple(data.images.shape) == (2, 3, 5, 6)
    assert (data.images[torch.tensor([0])] == 51).all()


def test_a_tensor_data_set():
    images, labels = torch.rand(4, 1, 7, 7), torch.tensor([0, 1, 2, 1])
    data = from_torch(torch.utils.data.TensorDataset(images, labels))
    assert tuple(data.images.shape) == (4, 1, 7, 7)
    assert data.num_classes == 3


def test_images_of_several_sizes_need_a_size(rng):
    source = [(picture(rng, (10, 10)), 0), (picture(rng, (12, 10)), 1)]
    with pytest.raises(UsageError, match="differ in size"):
        from_torch(source)
    assert from_torch(source, size=8).image_size == (8, 8)


@pytest.mark.parametrize("image", [torch.full((3, 4, 4), 7.0), np.zeros((4, 4, 3), np.int64)])
def test_what_is_no_image_is_said(image):
    with pytest.raises(UsageError, match="image 0"):
        from_torch([(image, 0), (image, 1)])


class Split:
    """What a Hugging Face split looks like from outside."""

    def __init__(self, rows, features):
        self.rows, self.features = rows, features

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, row):
        return self.rows[row]


class ClassLabel:
    names = ("cat", "dog")


def test_a_hugging_face_split(rng):
    rows = [{"image": picture(rng), "label": i % 2} for i in range(4)]
    split = Split(rows, {"image": object(), "label": ClassLabel()})
    data = from_huggingface(split, size=9)
    assert data.classes == ("cat", "dog")
    assert data.given.tolist() == [0, 1, 0, 1]
    with pytest.raises(UsageError, match="no column 'fine_label'"):
        from_huggingface(split, label="fine_label")
