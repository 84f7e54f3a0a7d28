"""mixup: straight lines between samples. Zhang et al., ICLR 2018."""

from __future__ import annotations

from torch import Tensor

from unswayed.errors import UsageError
from unswayed.learners import Classifier, Learner, register
from unswayed.learners.mixing import draw_mix
from unswayed.losses import Loss
from unswayed.types import Batch, Overview, Positive, Terms


@register("mixup", paper="Zhang et al., ICLR 2018, eq. 2")
class Mixup(Learner):
    """Train on l x_i + (1-l) x_j with the same mixture of the two labels' losses."""

    classifier: Classifier

    def __init__(
        self, classifier: Classifier, loss: Loss, run_seed: int = 0, alpha: Positive = 1.0
    ) -> None:
        """Store the parts.

        Args:
            classifier: the network.
            loss: of the given labels.
            run_seed: of the run.
            alpha: l ~ Beta(α, α), one draw a step; 1 is uniform, larger mixes more.
        """
        super().__init__()
        if loss.has_memory or loss.restart:
            raise UsageError(
                "mixup needs a loss that neither remembers samples nor restarts the training; "
                "choose another, or for forward and backward give loss.matrix"
            )
        self.classifier, self.loss = classifier, loss
        self.run_seed, self.alpha = run_seed, alpha

    def before_epoch(self, overview: Overview) -> None:
        """Let the loss look at the training set."""
        self.loss.before_epoch(overview)

    def forward(self, batch: Batch) -> Terms:
        """Return the mixed loss; a sample's record is that of the mixture it dominates."""
        mix = draw_mix(batch, self.alpha, self.run_seed, "mixup")
        logits: Tensor = self.classifier(mix.images(batch.views.weak[0]))
        own = self.loss(logits, batch.labels, batch.index)
        other = self.loss(logits, batch.labels[mix.partner], batch.index)
        total = (mix.share * own + (1 - mix.share) * other).mean()
        return Terms(total, {"label": own.detach().mean()}, own.detach(), logits.detach())
