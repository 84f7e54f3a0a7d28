from __future__ import annotations

import pytest
import torch

from unswayed.training.records import Recorder
from unswayed.types import Batch, Terms, Views


def test_notes_loss_margin_probability_and_prediction_by_row():
    logits = torch.tensor([[2.0, 0.5, 0.0], [0.0, 1.0, 3.0]])
    nothing = torch.zeros(2, 1, 1, 1)
    batch = Batch(Views((nothing,)), torch.tensor([0, 1]), torch.tensor([4, 1]), 0, 0.0)
    recorder = Recorder(6, torch.device("cpu"))
    recorder.note(batch, Terms(torch.tensor(0.0), {}, torch.tensor([0.1, 2.2]), logits))
    records = recorder.records
    assert records.predicted.tolist() == [-1, 2, -1, -1, 0, -1]
    assert records.margin[[4, 1]].tolist() == [1.5, -2.0]
    assert records.loss[[4, 1]].tolist() == pytest.approx([0.1, 2.2])
    assert records.probability[4].item() == pytest.approx(logits[0].softmax(0)[0].item())
    of_given = [logits[0].softmax(0)[0].item(), logits[1].softmax(0)[1].item()]
    assert records.given_probability[[4, 1]].tolist() == pytest.approx(of_given)
    assert torch.isnan(records.loss[0])
    assert torch.isnan(records.given_probability[0])
    again = Recorder(6, torch.device("cpu"))
    again.load_state_dict(recorder.state_dict())
    for a, b in zip(again.records, records, strict=True):
        assert torch.equal(a.nan_to_num(-9), b.nan_to_num(-9))
