"""Summary functions of point patterns: K, L, pair correlation, F, G, J, and their envelopes."""

from .distances import F as F
from .distances import G as G
from .distances import J as J
from .envelope import Envelope as Envelope
from .envelope import envelope as envelope
from .second_order import K as K
from .second_order import L as L
from .second_order import pair_correlation as pair_correlation
from .summary import Summary as Summary
