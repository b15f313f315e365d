"""Sixteen trainings as people run them: where the numbers come from, how batches are drawn, and what each is said to cost.

What a source does not fix is said in its sentence. Set-ups that aim at an ε take the noise that a Poisson accountant finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lastiterate as li

POISSON, SHUFFLED, CYCLIC, FULL = "Poisson", "shuffled", "cyclic", "full"
OPACUS, RDP, PLD = "Opacus", "dp-accounting RDP", "dp-accounting PLD"  # accountants, each with its own way of composing
SMALLER, DROP = "smaller", "drop"  # what becomes of records that do not fill a batch


@dataclass(frozen=True)
class Setup:
    """One training. `noise` is the multiplier on a sum of gradients clipped at `clip`; `target`, if given, the ε it is for.

    `optimizer` is what the source uses besides plain steps. `peer` is the accountant that the source uses, or the usual one.
    """

    name: str
    source: str
    sentence: str
    drawn: str
    records: int
    batch_size: int
    epochs: int
    step_size: float
    clip: float
    noise: float | None = None
    target: float | None = None
    delta: float = 1e-5
    steps: int | None = None
    last: str | None = None
    loss: Any = None
    optimizer: Callable[[], Any] | None = None
    told_noise: float | None = None
    peer: str = PLD
    covers: bool = False

    @property
    def per_epoch(self) -> int:
        rounded_up = self.peer == OPACUS or self.last == SMALLER
        return -(-self.records // self.batch_size) if rounded_up else self.records // self.batch_size

    @property
    def count(self) -> int:
        return self.epochs * self.per_epoch if self.steps is None else self.steps

    @property
    def told_steps(self) -> int:
        """As accountants are told them: batches may not end with the epochs."""
        whole = self.peer == OPACUS or self.steps is not None
        return self.count if whole else self.epochs * self.records // self.batch_size

    @property
    def rate(self) -> float:
        """As accountants are told it: one over the length of the loader, as Opacus does, or batch size over records."""
        return 1 / self.per_epoch if self.peer == OPACUS else self.batch_size / self.records

    @property
    def multiplier(self) -> float:
        if self.noise is not None:
            return self.noise
        return 1 / li.notions.largest_mu(
            epsilon=self.target, delta=self.delta, inclusion=self.rate, times=self.told_steps
        )


def momentum() -> Any:
    return li.SGD(momentum=0.9)


def adam() -> Any:
    return li.Adam()


def rmsprop() -> Any:
    return "RMSprop"


_MNIST_TUTORIAL = "tensorflow/privacy tutorials/README.md, mnist_dpsgd_tutorial.py"
_LI2022 = "lxuechen/private-transformers examples/classification/run_wrapper.py (Li et al. 2022)"
_SHUFFLE_BUFFER = (
    "The data set is shuffled and repeated before batching, so a batch may span two epochs; we describe whole "
    "epochs. The printed number is for Poisson batches, which were not drawn."
)

SETUPS = (
    Setup(
        "Opacus, MNIST example",
        "pytorch/opacus examples/mnist.py",
        "make_private draws Poisson batches, so both numbers hold; ours is the tighter upper bound.",
        POISSON, 60_000, 64, 10, 0.1, 1.0, noise=1.0, peer=OPACUS, covers=True,
    ),
    Setup(
        "Opacus, CIFAR-10 example",
        "pytorch/opacus examples/cifar10.py",
        "Poisson batches and momentum, which is post-processing of the noisy sums: composition covers it.",
        POISSON, 50_000, 2000, 90, 0.1, 10.0, noise=1.5, optimizer=momentum, peer=OPACUS, covers=True,
    ),
    Setup(
        "Opacus, CIFAR-10 tutorial",
        "pytorch/opacus tutorials/building_image_classifier.ipynb",
        "Poisson batches for a target of 50 under add-or-remove; the replace-one ε is larger.",
        POISSON, 50_000, 512, 20, 1e-3, 1.2, target=50.0, optimizer=rmsprop, peer=OPACUS, covers=True,
    ),
    Setup(
        "Opacus, IMDb example",
        "pytorch/opacus examples/imdb.py",
        "poisson_sampling=False: a shuffled loader with a smaller last batch, but an accountant for Poisson batches.",
        SHUFFLED, 25_000, 64, 10, 0.02, 1.0, noise=0.56, last=SMALLER, optimizer=adam, peer=OPACUS,
    ),
    Setup(
        "Opacus, names tutorial",
        "pytorch/opacus tutorials/building_lstm_name_classifier.ipynb (16,059 names)",
        "Poisson batches and plain SGD: composition, because only the clip of the network is known.",
        POISSON, 16_059, 800, 50, 2.0, 1.5, target=12.0, delta=8e-5, peer=OPACUS, covers=True,
    ),
    Setup(
        "TF Privacy, MNIST, 15 epochs", _MNIST_TUTORIAL, _SHUFFLE_BUFFER,
        SHUFFLED, 60_000, 256, 15, 0.25, 1.5, noise=1.3, last=SMALLER, peer=RDP,
    ),
    Setup(
        "TF Privacy, MNIST, 60 epochs", _MNIST_TUTORIAL, "As the one before.",
        SHUFFLED, 60_000, 256, 60, 0.15, 1.0, noise=1.1, last=SMALLER, peer=RDP,
    ),
    Setup(
        "TF Privacy, MNIST notebook",
        "tensorflow/privacy g3doc/tutorials/classification_privacy.ipynb",
        "Keras shuffles each epoch; compute_dp_sgd_privacy prints the number for Poisson batches.",
        SHUFFLED, 60_000, 250, 3, 0.25, 1.5, noise=1.3, peer=RDP,
    ),
    Setup(
        "TF Privacy, logistic regression",
        "tensorflow/privacy tutorials/mnist_lr_tutorial.py",
        "A convex loss in a fixed order: hiding the iterates lowers ε. The script has an analysis like ours. Its number "
        "for Poisson batches assumes noise on the sum of five gradients, but the noise was added to their mean.",
        CYCLIC, 60_000, 5, 5, 0.001, math.sqrt(130.0), noise=0.25, told_noise=0.05,
        loss=li.losses.softmax(feature_norm=math.sqrt(65.0)), peer=RDP,
    ),
    Setup(
        "TF Privacy, MovieLens",
        "tensorflow/privacy tutorials/movielens_tutorial.py",
        "Poisson batches drawn by hand, but sums are divided by the drawn batch size, which reveals it. We describe "
        "division by 10,000; no printed number is about that.",
        POISSON, 800_167, 10_000, 25, 0.01, 5.0, noise=0.55, delta=1e-6, optimizer=adam, peer=PLD,
    ),
    Setup(
        "RoBERTa on SST-2, ε = 8", _LI2022,
        "AdamW with gradient accumulation over a shuffled loader; the noise was calibrated for Poisson batches.",
        SHUFFLED, 67_349, 1000, 3, 5e-4, 0.1, target=8.0, delta=1 / (2 * 67_349), last=DROP, optimizer=adam,
    ),
    Setup(
        "RoBERTa on MNLI, ε = 3", _LI2022,
        "The same with larger batches and more epochs: with more epochs, composition for shuffled batches is further "
        "from Poisson's.",
        SHUFFLED, 392_702, 6000, 18, 5e-4, 0.1, target=3.0, delta=1 / (2 * 392_702), last=DROP, optimizer=adam,
    ),
    Setup(
        "WRN-16-4 on CIFAR-10, ε = 1",
        "google-deepmind/jax_privacy configs/cifar10_wrn_16_4_eps1.py (De et al. 2022)",
        "A buffer of ten batches shuffles a repeated data set; we describe whole epochs in new orders, and the average "
        "of iterates as the last one. The stopping rule uses a Poisson accountant.",
        SHUFFLED, 50_000, 4096, 60, 2.0, 1.0, noise=10.0, steps=725, last=DROP, peer=RDP,
    ),
    Setup(
        "ScatterNet and a linear model, Fashion-MNIST",
        "ftramer/Handcrafted-DP baselines.py (Tramèr and Boneh 2021)",
        "A linear model, but clipped as one vector and with momentum: not convex, so only composition is proved.",
        SHUFFLED, 60_000, 8192, 40, 16.0, 0.1, noise=4.05, last=DROP, optimizer=momentum, peer=RDP,
    ),
    Setup(
        "logistic regression in passes",
        "README.md: 50 epochs of batches of 1,500, l2 0.01",
        "Convex and shuffled: with hidden iterates ε is a fraction of composition's, and below that of Poisson batches; "
        "balls and bins would give less still.",
        SHUFFLED, 60_000, 1500, 50, 0.5, 1.0, noise=3.0, loss=li.losses.logistic(feature_norm=1.0, l2=0.01),
    ),
    Setup(
        "ridge regression, full batches",
        "the loss of PrivateLinearRegression(loss='ridge'), 16,512 rows (California housing), l2 0.05",
        "Strongly convex: our ε stops growing with the steps. The accountant's number also holds, but keeps growing.",
        FULL, 16_512, 16_512, 200, 0.5, 1.0, noise=20.0, covers=True,
        loss=li.losses.ridge(feature_norm=1.0, l2=0.05, clip=1.0),
    ),
)  # fmt: skip
