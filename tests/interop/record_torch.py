#!/usr/bin/env python3
"""Record a small network of PyTorch as StableHLO, with inputs and results: needs torch and torch-mlir.

    python tests/interop/record_torch.py   # writes tests/data/stablehlo/torch_network.mlir and .npz
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_mlir import fx

DATA = Path(__file__).resolve().parent.parent / "data" / "stablehlo"


class Network(nn.Module):
    """A convolution with batch normalisation, attention over the places of the image, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.batch_norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.Linear(4, 12)
        self.layer_norm = nn.LayerNorm(4)
        self.classifier = nn.Linear(4, 3)

    def forward(self, images: Any) -> Any:
        x = self.pool(nn.functional.gelu(self.batch_norm(self.convolution(images))))
        x = x.flatten(2).transpose(1, 2)
        q, k, v = self.attention(x).chunk(3, dim=-1)
        x = self.layer_norm(x + torch.softmax(q @ k.transpose(-1, -2) / 2, dim=-1) @ v)
        return torch.log_softmax(self.classifier(x.mean(1)), dim=-1)


def main() -> None:
    torch.manual_seed(0)
    network = Network().eval()
    images = torch.randn(2, 1, 6, 6)
    text = str(fx.export_and_import(network, images, output_type="stablehlo"))
    (DATA / "torch_network.mlir").write_text(text)
    np.savez_compressed(DATA / "torch_network.npz", images=images.numpy(), result=network(images).detach().numpy())


if __name__ == "__main__":
    main()
