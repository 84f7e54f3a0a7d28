from __future__ import annotations

import torch

from unswayed.memory import Memory


def test_values_are_read_and_written_by_row():
    memory = Memory(5, 2, fill=-1.0)
    rows = torch.tensor([3, 0])
    memory[rows] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert memory[rows].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert memory.values.tolist() == [[3, 4], [-1, -1], [-1, -1], [1, 2], [-1, -1]]


def test_what_is_written_takes_the_kind_of_the_memory():
    memory = Memory(3, dtype=torch.int32)
    memory[torch.tensor([1])] = torch.tensor([7], dtype=torch.int64)
    assert memory.values.dtype == torch.int32
    assert memory.values.tolist() == [0, 7, 0]


def test_it_is_part_of_a_state():
    memory, other = Memory(4, fill=1.0), Memory(4)
    memory[torch.tensor([2])] = torch.tensor([9.0])
    other.load_state_dict(memory.state_dict())
    assert torch.equal(memory.values, other.values)
